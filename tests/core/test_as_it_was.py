"""Changes that found everything as wanted, sendings that nobody knows about, and hostile files, as
the person reads them."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path
from typing import Any

import pypdf
import pytest

from bot.app import House
from core.accounts import AccountKind
from core.messages import TurnClosed, TurnSuspended
from core.store import accounts, actors, effects
from tests.core.test_questions import press
from tests.core.test_questions import said as said_by_id
from tests.executors.test_mail_half_done import Exchange
from tests.executors.test_mail_trouble import server
from tests.support.house import open_scripted
from tests.support.mail_servers import HAS_DOVECOT, PASSWORD, USER, mail_host
from tests.support.scripted_model import Ask, Rule

LANGS = ("it", "en")
WORDS: dict[str, dict[str, Any]] = {
    "it": {
        "list": "aggiungi latte alla lista spesa",
        "folder": "crea la cartella Prova",
        "send": "manda una mail a a@x.example con testo ciao",
        "made": ("Scritto:", "Creato:"),
        "unknown": "Non so se sia riuscito: a@x.example",
    },
    "en": {
        "list": "add latte to the list spesa",
        "folder": "create the folder Prova",
        "send": "send an email to a@x.example with text ciao",
        "made": ("Written:", "Created:"),
        "unknown": "I do not know whether this worked: a@x.example",
    },
}
HOSTILE = {
    "read_files_pdf": ("chiuso.pdf", "È protetto da una password", "It is locked with a password"),
    "read_files_doc": ("rotto.docx", "Il file è danneggiato", "The file is damaged"),
    "read_files_spreadsheet": ("enorme.csv", "È troppo grande per me", "It is too large for me"),
    "extract_files": ("scivolo.zip", "Il file è danneggiato", "The file is damaged"),
}


def _rules(notes: Path) -> list[Rule]:
    def acts(ask: Ask) -> list[tuple[str, dict[str, Any]]]:
        if "spesa" in ask.user:
            return [("write_lists", {"name": "spesa", "items": ["latte"]})]
        if "Prova" in ask.user:
            return [("create_dirs", {"paths": [str(notes / "Prova")]})]
        if "@" in ask.user:
            return [("send_messages", {"to": ["a@x.example"], "body": "ciao"})]
        tool = next(tool for tool, (name, *_) in HOSTILE.items() if name in ask.user)
        return [(tool, {"paths": [str(notes / HOSTILE[tool][0])]})]

    return [Rule(after=0, calls=acts), Rule(text="Ok.")]


async def _ended(house: House, words: str, number: int) -> TurnClosed:
    last: Any = (await said_by_id(house, words, id=f"t:{number}"))[-1]
    if isinstance(last, TurnSuspended):
        last = (await press(house, last, "✅", id=f"p:{number}"))[-1]
    assert isinstance(last, TurnClosed)
    return last


@pytest.mark.parametrize("lang", LANGS)
async def test_what_was_as_wanted_is_not_told_as_made(tmp_path: Path, lang: str) -> None:
    words = WORDS[lang]
    rules = _rules(tmp_path / "notes")
    async with open_scripted(tmp_path, rules, metnos_lang=lang, metnos_memory=False) as (house, _):
        for number, name in enumerate(("list", "folder")):
            first = await _ended(house, words[name], 2 * number)
            again = await _ended(house, words[name], 2 * number + 1)

            assert words["made"][number] in first.reply.plain
            assert words["made"][number] not in again.reply.plain
            assert await _left(house, first) == [effects.EffectState.DONE]
            assert effects.EffectState.DONE not in await _left(house, again)


async def _left(house: House, end: TurnClosed) -> list[effects.EffectState]:
    async with house.stores.main.read() as tx:
        return [one.state for one in await effects.of_turn(tx, end.turn_id)]


@pytest.mark.needs_dovecot
@pytest.mark.skipif(not HAS_DOVECOT, reason="needs dovecot-imapd and root")
@pytest.mark.parametrize("lang", LANGS)
async def test_sending_that_a_server_left_in_the_middle_is_not_known(
    tmp_path: Path, lang: str
) -> None:
    rules = _rules(tmp_path / "notes")
    exchange = Exchange(after={1: "hangs up"})
    with mail_host() as box, server(exchange.talk) as port:
        async with open_scripted(tmp_path, rules, metnos_lang=lang, metnos_memory=False) as (
            house,
            _,
        ):
            async with house.stores.main.write() as tx:
                person = await actors.find_host(tx)
                assert person is not None
                values = {
                    "address": USER, "user": USER, "imap_host": "127.0.0.1",
                    "imap_port": box.imap_port, "imap_safety": "none",
                    "smtp_host": "127.0.0.1", "smtp_port": port, "smtp_safety": "none",
                }  # fmt: skip
                await accounts.put(tx, house.stores.vault, person.id, "Casa", AccountKind.MAIL,
                                   values, PASSWORD, house.clock.now())  # fmt: skip
            end = await _ended(house, WORDS[lang]["send"], 1)

    assert WORDS[lang]["unknown"] in end.reply.plain
    assert len(exchange.taken) == 1


@pytest.mark.parametrize("lang", LANGS)
async def test_hostile_files_get_a_clear_word_and_leave_nothing(tmp_path: Path, lang: str) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    locked = pypdf.PdfWriter()
    locked.add_blank_page(100, 100)
    locked.encrypt("segreta", algorithm="RC4-128")
    locked.write(notes / "chiuso.pdf")
    (notes / "rotto.docx").write_bytes(b"PK\x03\x04x")
    (notes / "enorme.csv").touch()
    os.truncate(notes / "enorme.csv", 5 << 30)
    with zipfile.ZipFile(notes / "scivolo.zip", "w") as packed:
        packed.writestr("../../fuori.txt", "x")
    before = sorted(path.name for path in tmp_path.rglob("*") if "home" not in path.parts)

    async with open_scripted(tmp_path, _rules(notes), metnos_lang=lang, metnos_memory=False) as (
        house,
        _,
    ):
        for number, (name, *said) in enumerate(HOSTILE.values()):
            verb = {"it": "estrai", "en": "extract"} if "zip" in name else {}
            words = f"{verb.get(lang, 'leggi' if lang == 'it' else 'read')} {name}"
            end = await _ended(house, words, number)
            assert said[LANGS.index(lang)] in end.reply.plain, name
    after = sorted(path.name for path in tmp_path.rglob("*") if "home" not in path.parts)

    assert after == before
