"""Kinds 3.1 and 3.2: what is too long, and what looks like markup, is shown whole and exactly."""

from __future__ import annotations

import pytest

from tests.field.field import NOW, Field, both, buttons

LIMIT = 4096


def units(text: str) -> int:
    """Length as Telegram counts it."""
    return len(text.encode("utf-16-le")) // 2


def words_of(text: str) -> list[str]:
    return text.split()


@both
def test_3_01_long_answer_comes_in_parts_that_fit_counted_in_utf16(field: Field, lang: str):
    request = {"it": "racconta tutto", "en": "tell me everything"}[lang]
    lines = [f"riga{n} 🧿🪬🫧🪩 {'è' * 20}" for n in range(260)]
    field.teach(request, answer="\n\n".join(lines))
    name = field.person(lang)

    field.ask(name, request, "riga259")

    shown = field.texts(name)
    assert len(shown) > 1
    assert all(units(text) <= LIMIT for text in shown)
    assert words_of("\n".join(shown)) == words_of("\n".join(lines))
    assert field.events(name, "error") == []


def test_3_01_code_that_is_split_stays_code_in_every_part(field: Field):
    code = "\n".join(f"print({n})  # <b>&amp;</b> {'x' * 30}" for n in range(180))
    field.teach("scrivi il programma", answer=f"Ecco:\n\n```python\n{code}\n```\n\nFine.")
    name = field.person()

    field.ask(name, "scrivi il programma", "Fine")

    sent = [e["message"] for e in field.events(name, "send")]
    assert len(sent) > 1
    for message in sent:
        blocks = [e for e in message["entities"] if e["type"] == "pre"]
        assert len(blocks) == 1
        assert blocks[0]["language"] == "python"
    shown = "\n".join(field.texts(name))
    assert [line for line in shown.splitlines() if line.startswith("print")] == code.splitlines()


@both
def test_3_01_buttons_of_a_long_answer_hang_under_its_last_part(field: Field, lang: str):
    request = {"it": "scrivi ciao in ~/notes/lungo.md", "en": "write ciao to ~/notes/long.md"}[
        lang
    ]
    path = request.rpartition(" ")[2]
    long = "\n\n".join(f"capoverso {n} {'parola ' * 12}" for n in range(120))
    field.teach(request, ("write_files", {"path": path, "content": "ciao"}), answer=long)
    name = field.person(lang)

    last = field.ask(name, request, buttons=[r"^↩️"])

    sent = field.events(name, "send")
    assert len(sent) > 1
    assert [bool(buttons(e)) for e in sent] == [False] * (len(sent) - 1) + [True]
    assert last["message"]["message_id"] == sent[-1]["message"]["message_id"]


def test_3_01_refused_part_is_sent_again_and_the_others_are_not(field: Field):
    lines = [f"voce{n} {'abc ' * 20}" for n in range(200)]
    field.teach("elenca le voci", answer="\n\n".join(lines))
    name = field.person()
    chat = field.telegram.names[name]

    field.telegram.say(name, "elenca le voci")
    field.hear(name, "voce0")
    field.telegram.fault("sendMessage", code=502, chat_id=chat)
    field.hear(name, "voce199")

    assert words_of("\n".join(field.texts(name))) == words_of("\n".join(lines))


@both
def test_3_01_table_alone_is_never_an_empty_message(field: Field, lang: str):
    request = {"it": "fai la tabella", "en": "make the table"}[lang]
    field.teach(request, answer="| Voce | Euro |\n|---|---|\n| pane | 3,20 |\n| latte | 1,80 |")
    name = field.person(lang)

    shown = field.ask(name, request)["message"]["text"]

    assert all(word in shown for word in ("pane", "3,20", "latte", "1,80"))
    assert "|---" not in shown


@both
def test_3_01_answer_beyond_some_parts_is_a_file(field: Field, lang: str):
    request = {"it": "dimmi proprio tutto", "en": "tell me really everything"}[lang]
    lines = [f"riga{n} {'abc ' * 20}" for n in range(1200)]
    field.teach(request, answer="\n\n".join(lines))
    name = field.person(lang)

    file = field.ask(name, request, has="document")

    whole = field.telegram.download(file).decode()
    assert words_of(whole) == words_of("\n".join(lines))
    name_shown = {"it": "risposta", "en": "answer"}[lang]
    assert file["message"]["document"]["file_name"].startswith(name_shown)
    assert len(field.texts(name)) <= 3


NASTY = {
    "address": "Scrivi a <nobody@example.com> oggi",
    "tags": "un <foo>tag</foo> & un <b>altro",
    "underscores": "il file mio_file_di_prova.txt e snake_case",
    "ticks": "prima ```dentro``` dopo",
    "brackets": "lista[0](x) e [senza fine",
    "signs": "2 * 3 * 4 = 24 ... ~ # + - = | { } . !",
    "backslash": "C:\\temp\\nuovo e \\d+",
}


@pytest.mark.parametrize("text", NASTY.values(), ids=NASTY)
def test_3_02_signs_like_markup_are_shown_and_refused_by_nobody(field: Field, text: str):
    field.teach(f"ripeti {text}", answer=text)
    name = field.person()

    shown = field.ask(name, f"ripeti {text}")["message"]["text"]

    kept = [word for word in words_of(text) if word.strip("`*")]
    assert all(word.strip("`") in shown for word in kept)
    assert "\\_" not in shown
    assert field.events(name, "error") == []


@both
def test_3_02_refused_formats_fall_back_to_clean_text(field: Field, lang: str):
    request = {"it": "dillo in grassetto", "en": "say it in bold"}[lang]
    field.teach(request, answer="un **peso** di 2.5 kg (circa) e `codice_mio`!")
    name = field.person(lang)
    chat = field.telegram.names[name]
    field.telegram.fault(
        "sendMessage", code=400, text="can't parse entities: unsupported start tag", chat_id=chat
    )

    event = field.ask(name, request, "peso")

    assert event["message"]["text"] == "un peso di 2.5 kg (circa) e codice_mio!"
    assert "entities" not in event["message"]
    assert len(field.texts(name)) == 1


@both
def test_3_02_status_shows_a_request_with_an_address_exactly(field: Field, lang: str):
    request = {"it": "scrivi a <a_b@example.com>", "en": "write to <a_b@example.com>"}[lang]
    field.teach(request, NOW, answer="ok", delay=2.0)
    name = field.person(lang)

    field.telegram.say(name, request)
    field.wait_for(lambda: field.asked(request), what="the model")
    field.ask(name, "/status", request.replace(".", r"\."))

    assert not [e for e in field.events(name, "error") if e["code"] == 400]


@both
def test_3_02_card_shows_the_name_of_a_file_as_it_is(field: Field, lang: str):
    odd = "a_b*c`d`<e>&[f](g).txt"
    (field.notes / odd).write_text("x")
    request = {"it": f"elimina ~/notes/{odd}", "en": f"delete ~/notes/{odd}"}[lang]
    field.teach(request, ("delete_files", {"paths": [f"~/notes/{odd}"]}))
    name = field.person(lang)

    card = field.ask(name, request, buttons=["^✅", "^✋"])

    assert odd in card["message"]["text"]
    assert field.events(name, "error") == []
