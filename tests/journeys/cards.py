"""The scenes of the transcripts: what is prepared, what the model is scripted to say, and what
the people do. What the bot says stands nowhere here."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.journeys.stage import GUEST, LANGS, Stage
from tests.support.mail import fill_mailbox, folder_of
from tests.support.scripted_model import Ask, Rule

if TYPE_CHECKING:
    from tests.journeys.transcripts import Player

Call = tuple[str, dict[str, Any]]
BY_LANG = Mapping[str, str]

_END = {"it": "Fatto.", "en": "Done."}
_NO_CHANGE = {"it": "Va bene.", "en": "All right."}
_MAIL = {
    "m1": {
        "sender": "ordini@ferramenta.example",
        "subject": "Disponibilità chiavi a tubo",
        "text": "Scrivete a magazzino@altrove.example",
    },
    "m2": {"sender": "gas@energia.example", "subject": "Fattura di novembre", "text": "40 euro"},
}


@dataclass(frozen=True)
class Scene:
    """`calls`: what the model calls at each step. `play`: what people do, the request first."""

    name: str
    title: str
    request: BY_LANG
    calls: Sequence[Callable[[str], Call]]
    play: Callable[[Player, str], None]
    prepare: Callable[[Stage, str], None] = lambda stage, lang: None
    end: Mapping[str, str | Callable[[Ask], str]] = field(default_factory=lambda: _END)


def rules_of(scenes: Sequence[Scene]) -> list[Rule]:
    """The script of the model for all of them."""
    rules = []
    for scene in scenes:
        for lang in LANGS:
            user = f"^{re.escape(scene.request[lang])}$"
            for step, call in enumerate(scene.calls):
                rules.append(Rule(user=user, after=step, calls=[call(lang)]))
            rules.append(Rule(user=user, text=scene.end[lang]))
    return rules


# -- consent --------------------------------------------------------------------------------------


def _one_file(stage: Stage, lang: str) -> None:
    (stage.notes / "bozza.md").write_text("testo\n", encoding="utf-8")


def _many_files(stage: Stage, lang: str) -> None:
    shutil.rmtree(stage.notes / "Archivio", ignore_errors=True)
    folder = stage.notes / "Download"
    folder.mkdir(exist_ok=True)
    for number in range(24):
        (folder / f"ricevuta-{number:02}.pdf").write_bytes(bytes(40_000 + number))


def _a_mailbox(stage: Stage, lang: str) -> None:
    for box in (stage.notes / "posta", stage.notes / "mail"):
        if not box.exists():
            fill_mailbox(box, _MAIL)
        elif not folder_of(box, "inbox"):
            for path in list(box.rglob("*.json")):
                path.rename(box / "inbox" / path.name)


def _says_yes(player: Player, request: str) -> None:
    player.say(request)
    message = player.card()
    player.press("^✅")
    player.press_again("^✅", message)


def _says_no(player: Player, request: str) -> None:
    player.say(request)
    player.press("^✋")


def _looks_and_says_yes(player: Player, request: str) -> None:
    player.say(request)
    player.press("^👁")
    player.press("^✅")


def _often(player: Player, request: str) -> None:
    for _ in range(4):
        _one_file(player.stage, player.lang)
        player.say(request)
        player.press("^✅")


def _always(player: Player, request: str) -> None:
    for _ in range(2):
        _many_files(player.stage, player.lang)
        player.say(request)
        player.press("(?i)sempre|always")


def _guest_presses(player: Player, request: str) -> None:
    player.say(request)
    player.press_as_guest("^✅")
    player.press("^✋")


def _deletes(path: str) -> Callable[[str], Call]:
    return lambda lang: ("delete_files", {"paths": [path]})


_DELETE_ALL = (
    lambda lang: ("find_files", {"base_path": "~/notes/Download", "patterns": ["*.pdf"]}),
    lambda lang: ("delete_files", {"from_step": 1}),
)


def _reads_mail(lang: str) -> Call:
    return ("read_messages", {"mailbox": "~/notes/posta" if lang == "it" else "~/notes/mail"})


def _sends_outside(lang: str) -> Call:
    args = {
        "mailbox": "~/notes/posta" if lang == "it" else "~/notes/mail",
        "to": "magazzino@altrove.example",
        "subject": "Disponibilità chiavi a tubo",
        "text": "Le avete?",
    }
    return ("send_messages", args)


# -- fields ---------------------------------------------------------------------------------------


def _field(kind: str, it: str, en: str, **more: Any) -> Callable[[str], Call]:
    def call(lang: str) -> Call:
        field = {"var": kind, "prompt": it if lang == "it" else en, "kind": kind, **more}
        return ("get_inputs", {"fields": [field]})

    return call


def _answers(it: str, en: str, *, wrong: str = "") -> Callable[[Player, str], None]:
    def play(player: Player, request: str) -> None:
        player.say(request)
        if wrong:
            player.say(wrong)
        player.say(it if player.lang == "it" else en)

    return play


def _presses(label: str) -> Callable[[Player, str], None]:
    def play(player: Player, request: str) -> None:
        player.say(request)
        player.press(label)

    return play


def _asking(
    kind: str, call: Callable[[str], Call], play: Callable[[Player, str], None], it: str, en: str
) -> Scene:
    # A step has to come first: until then the model is not shown the tools that ask.
    return Scene(
        f"field {kind}",
        f"A field: {kind}",
        {"it": it, "en": en},
        (_now, call),
        play,
        end=_NO_CHANGE,
    )


def _now(lang: str) -> Call:
    return ("get_now", {})


# -- places ---------------------------------------------------------------------------------------


def _asks_place(lang: str) -> Call:
    prompt = {
        "it": "Per trovare la farmacia più vicina mi serve dove sei.",
        "en": "To find the nearest pharmacy I need to know where you are.",
    }[lang]
    return ("request_location_from_user", {"prompt": prompt})


def _finds_near(lang: str) -> Call:
    word = "farmacia" if lang == "it" else "pharmacy"
    return ("find_places", {"queries": [word], "near": "{{step1.lat}},{{step1.lon}}"})


def _nearest(ask: Ask) -> str:
    """What a model would say of the places that were found."""
    found = json.loads(ask.last_result).get("entries") or [{"name": "?", "distance": "?"}]
    return f"{found[0]['name']}, {found[0].get('distance')}"


_NEAREST = dict.fromkeys(LANGS, _nearest)


def _sends_place(player: Player, request: str) -> None:
    player.say(request)
    player.press("^📍", lat=44.6, lon=10.9)


def _types_place(player: Player, request: str) -> None:
    player.say(request)
    player.press("^✏️")
    player.say("via Nessuna 999")
    player.say("Via Doppia 1")
    player.press("Borgo")


# -- ends -----------------------------------------------------------------------------------------


def _lets_expire(player: Player, request: str) -> None:
    player.say(request)
    player.expire()
    player.press("^🔁")
    player.press("^✋")


def _is_killed(player: Player, request: str) -> None:
    """Killed while it works on a change whose end nobody knows."""
    player.say_and_kill(request)
    for label in ("^🔍", "^✖️"):
        player.press(label)


def _takes_back(player: Player, request: str) -> None:
    player.say(request)
    player.say("annulla" if player.lang == "it" else "undo")
    player.say("annulla" if player.lang == "it" else "undo")


def _reaches_cap(player: Player, request: str) -> None:
    player.say(request)
    player.press("^(▶️|✅|➕)")


def _step_of_many(number: int) -> Callable[[str], Call]:
    return lambda lang: (
        "write_files",
        {"path": f"~/notes/passo-{number}-{lang}.md", "content": f"passo {number}"},
    )


def _guest_asks(player: Player, request: str) -> None:
    player.say(request, GUEST)


SCENES: tuple[Scene, ...] = (
    Scene(
        "approval short",
        "Approval: one file, agreed; pressed twice",
        {"it": "elimina ~/notes/bozza.md", "en": "delete ~/notes/bozza.md"},
        (_deletes("~/notes/bozza.md"),),
        _says_yes,
        _one_file,
    ),
    Scene(
        "approval declined",
        "Approval: one file, declined",
        {"it": "elimina subito ~/notes/bozza.md", "en": "delete ~/notes/bozza.md at once"},
        (_deletes("~/notes/bozza.md"),),
        _says_no,
        _one_file,
        _NO_CHANGE,
    ),
    Scene(
        "approval full",
        "Approval: many files, with the list",
        {"it": "elimina i pdf in ~/notes/Download", "en": "delete the pdfs in ~/notes/Download"},
        _DELETE_ALL,
        _looks_and_says_yes,
        _many_files,
    ),
    Scene(
        "approval shortened",
        "Approval: the same again and again",
        {"it": "elimina la bozza ~/notes/bozza.md", "en": "delete the draft ~/notes/bozza.md"},
        (_deletes("~/notes/bozza.md"),),
        _often,
    ),
    Scene(
        "approval always",
        "Approval: always for this request",
        {
            "it": "sposta i pdf da ~/notes/Download in ~/notes/Archivio",
            "en": "move the pdfs from ~/notes/Download to ~/notes/Archivio",
        },
        (
            _DELETE_ALL[0],
            lambda lang: ("move_files", {"from_step": 1, "dst": "~/notes/Archivio"}),
        ),
        _always,
        _many_files,
    ),
    Scene(
        "approval guest",
        "A guest presses the host's button",
        {"it": "elimina adesso ~/notes/bozza.md", "en": "delete ~/notes/bozza.md now"},
        (_deletes("~/notes/bozza.md"),),
        _guest_presses,
        _one_file,
        _NO_CHANGE,
    ),
    _asking(
        "text",
        _field("text", "Come la chiamo?", "What shall I call it?"),
        _answers("Spesa", "Shopping"),
        "fai una nota nuova",
        "make a new note",
    ),
    _asking(
        "yes_no",
        _field("yes_no", "Anche le sottocartelle?", "The folders inside as well?"),
        _presses("^✅"),
        "conta i file",
        "count the files",
    ),
    _asking(
        "choice",
        _field("choice", "In che formato?", "In which format?", options=["PDF", "HTML", "Word"]),
        _presses("HTML"),
        "esporta la nota",
        "export the note",
    ),
    _asking(
        "multi_choice",
        _field("multi_choice", "Quali mesi?", "Which months?", options=["ott", "nov", "dic"]),
        _answers("1, 3", "1, 3"),
        "riassumi i mesi",
        "sum up the months",
    ),
    _asking(
        "number",
        _field("number", "Quanti ne mostro?", "How many shall I show?"),
        _answers("venti", "twenty", wrong="boh"),
        "mostra gli ultimi",
        "show the last ones",
    ),
    _asking(
        "date",
        _field("date", "Da quale giorno?", "From which day?"),
        _answers("ieri", "yesterday"),
        "cosa è cambiato?",
        "what has changed?",
    ),
    _asking(
        "file_path",
        _field("file_path", "In quale file?", "In which file?"),
        _answers("annulla", "cancel"),
        "aggiungi una riga",
        "add a line",
    ),
    _asking(
        "secret",
        _field("secret", "La password della casella?", "The mailbox's password?"),
        _answers("xyz-segreta-1", "xyz-secret-1"),
        "collega la posta",
        "connect the mail",
    ),
    Scene(
        "disambiguation",
        "One of several",
        {"it": "scrivi ad Anna", "en": "write to Anna"},
        (
            _now,
            lambda lang: (
                "request_disambiguation_from_user",
                {
                    "prompt": {
                        "it": "Ho tre «Anna». A chi scrivo?",
                        "en": "There are three Annas. Which one?",
                    }[lang],
                    "options": ["Anna Bianchi (mail)", "Anna Verdi (mail)", "Anna (Telegram)"],
                },
            ),
        ),
        _presses("Verdi"),
        end=_NO_CHANGE,
    ),
    Scene(
        "location button",
        "A place, by the button",
        {"it": "qual è la farmacia più vicina?", "en": "where is the nearest pharmacy?"},
        (_asks_place, _finds_near),
        _sends_place,
        end=_NEAREST,
    ),
    Scene(
        "location typed",
        "A place, typed: not found, then two of them",
        {"it": "trova la farmacia più vicina", "en": "find the nearest pharmacy"},
        (_asks_place, _finds_near),
        _types_place,
        end=_NEAREST,
    ),
    Scene(
        "location refused",
        "A place, refused",
        {"it": "cerca la farmacia più vicina", "en": "look for the nearest pharmacy"},
        (_asks_place, _finds_near),
        _presses("^✖️"),
        end=_NO_CHANGE,
    ),
    Scene(
        "expiry",
        "Nobody answers in time; asked again",
        {"it": "elimina domani ~/notes/bozza.md", "en": "delete ~/notes/bozza.md later"},
        (_deletes("~/notes/bozza.md"),),
        _lets_expire,
        _one_file,
        _NO_CHANGE,
    ),
    Scene(
        "cap",
        "The steps run out",
        {"it": "scrivi tutti i passi", "en": "write all the steps"},
        [_step_of_many(n) for n in range(14)],
        _reaches_cap,
    ),
    Scene(
        "approval outside",
        "Approval: the address comes from what was read",
        {
            "it": "leggi la posta in ~/notes/posta e manda la risposta: Le avete?",
            "en": "read the mail in ~/notes/mail and send the answer: Le avete?",
        },
        (_reads_mail, _sends_outside),
        _says_yes,
        _a_mailbox,
    ),
    Scene(
        "restart",
        "Killed in the middle of a change",
        {
            "it": "manda a marta@posta.example il testo: vengo, da ~/notes/posta",
            "en": "send to marta@posta.example the text: vengo, from ~/notes/mail",
        },
        (
            lambda lang: (
                "send_messages",
                {
                    "mailbox": "~/notes/posta" if lang == "it" else "~/notes/mail",
                    "to": "marta@posta.example",
                    "text": "vengo",
                    "slow": True,
                },
            ),
        ),
        _is_killed,
        _a_mailbox,
    ),
    Scene(
        "undo",
        "Taken back, and once more",
        {"it": "scrivi ciao in ~/notes/saluto.md", "en": "write ciao to ~/notes/saluto.md"},
        (lambda lang: ("write_files", {"path": "~/notes/saluto.md", "content": "ciao"}),),
        _takes_back,
    ),
)
