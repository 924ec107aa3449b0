"""What a text answers: tables of answers in both languages, and which question they are for."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.dialog_answers import answer_of_choice, is_cancel, parse_answer, which
from core.dialogs import (
    NO,
    YES,
    Answer,
    Field,
    FieldKind,
    Option,
    Suspension,
    SuspensionKind,
    ttl_of,
    with_answer,
)

TODAY = date(2026, 11, 30)  # a Monday
NOW = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)
PEOPLE = (
    Option("a7", "Anna Bianchi (mail)"),
    Option("b3", "Anna Verdi (mail)"),
    Option("c9", "Anna (Telegram)"),
)


def field(kind: str, *, options: tuple[Option, ...] = (), optional: bool = False) -> Field:
    return Field("it", "Quale?", FieldKind(kind), options, optional, default=None)


def read(kind: str, text: str, lang: str = "it", options: tuple[Option, ...] = ()) -> Any:
    """The value, or `...` when the text has not the shape."""
    answer = parse_answer(field(kind, options=options), text, lang=lang, today=TODAY)
    return ... if answer is None else answer.value


def question(
    name: str, kind: SuspensionKind = SuspensionKind.APPROVAL, *fields: Field, age_s: int = 0
) -> Suspension:
    made = NOW - timedelta(seconds=age_s)
    return Suspension(
        name,
        kind,
        "turn",
        "ada",
        "telegram:1:",
        made,
        made + ttl_of(kind),
        fields,
        prompt_key=f"turn:{name}",
        message_id=f"m-{name}",
    )


def chosen(open_ones: list[Suspension], text: str, reply_to: str | None = None) -> str | None:
    found = which(open_ones, text, reply_to, lang="it", today=TODAY)
    return None if found is None else found.id


@pytest.mark.parametrize(
    "text",
    ["sì", "Si", "SÌ!", "si'", "sí", "ok", "va bene", "d'accordo", "d\u2019accordo", "certo.",
     "procedi", "Sì, procedi", "confermo", "sì, questa volta", "yes", "Y", "Yes, please",
     "do it", "go ahead", "ＹＥＳ", "👍", "👍🏽", "✅"],
)  # fmt: skip
def test_yes_in_both_languages_is_true(text: str) -> None:
    assert read("yes_no", text, "it") is True
    assert read("yes_no", text, "en") is True


@pytest.mark.parametrize(
    "text",
    ["no", "No.", "no grazie", "No, grazie", "meglio di no", "non farlo", "non ora", "nope",
     "no thanks", "don't do it", "not now", "👎", "✋"],
)  # fmt: skip
def test_no_in_both_languages_is_false(text: str) -> None:
    assert read("yes_no", text, "it") is False
    assert read("yes_no", text, "en") is False


@pytest.mark.parametrize(
    "text",
    ["", "  ", "sì?", "sì ma prima dimmi che ore sono", "ok?", "forse", "maybe", "sì\nno",
     "sì sì sì sì sì sì sì sì sì sì sì sì", "no, sì", "fine", "che ore sono", "1", "s" * 10_000,
     "non so", "yes and no"],
)  # fmt: skip
def test_yes_no_of_anything_else_is_no_answer(text: str) -> None:
    assert read("yes_no", text) is ...


@pytest.mark.parametrize(
    ("text", "lang", "expected"),
    [
        ("3", "it", 3),
        ("-4", "it", -4),
        ("0", "en", 0),
        ("3,5", "it", 3.5),
        ("3.5", "it", 3.5),
        ("3,5", "en", 3.5),
        ("1.500", "it", 1500),
        ("1.500", "en", 1.5),
        ("1,500", "en", 1500),
        ("1.234.567,25", "it", 1234567.25),
        ("1,234,567.25", "en", 1234567.25),
        ("1,500.25", "it", 1500.25),
        ("1 000", "it", 1000),
        ("tre", "it", 3),
        ("Ventitré", "it", 23),
        ("trentotto", "en", 38),
        ("centoventi", "it", 120),
        ("duecentocinquanta", "it", 250),
        ("duemilacinquecento", "it", 2500),
        ("mille e uno", "it", 1001),
        ("due e mezzo", "it", 2.5),
        ("mezzo", "it", 0.5),
        ("due virgola cinque", "it", 2.5),
        ("meno tre", "it", -3),
        ("una", "it", 1),
        ("twenty-five", "en", 25),
        ("a hundred", "en", 100),
        ("one hundred and five", "en", 105),
        ("two thousand three hundred and twelve", "en", 2312),
        ("two and a half", "en", 2.5),
        ("minus two point five", "en", -2.5),
        ("a dozen", "en", 12),
    ],
)
def test_number_in_digits_or_words_is_read(text: str, lang: str, expected: float) -> None:
    value = read("number", text, lang)

    assert value == expected
    assert type(value) is type(expected)


@pytest.mark.parametrize(
    "text",
    ["", "a", "e", "and", "tre file", "1.500.25", "uno due tre", "due due", "dieci tre",
     "99999999999999999999", "1e9", "nan", "inf", "0x10", "3 + 4", "--3", "tre?", "cento cento",
     "9" * 10_000],
)  # fmt: skip
@pytest.mark.parametrize("lang", ["it", "en"])
def test_number_of_anything_else_is_no_answer(text: str, lang: str) -> None:
    assert read("number", text, lang) is ...


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("oggi", "2026-11-30"),
        ("Domani!", "2026-12-01"),
        ("dopodomani", "2026-12-02"),
        ("ieri", "2026-11-29"),
        ("today", "2026-11-30"),
        ("the day after tomorrow", "2026-12-02"),
        ("2026-03-12", "2026-03-12"),
        ("12/03", "2027-03-12"),
        ("12/03/2026", "2026-03-12"),
        ("12.3.27", "2027-03-12"),
        ("03/25", "2027-03-25"),
        ("30/11", "2026-11-30"),
        ("12 marzo", "2027-03-12"),
        ("il 12 marzo 2028", "2028-03-12"),
        ("primo gennaio", "2027-01-01"),
        ("l'8 dicembre", "2026-12-08"),
        ("due dicembre", "2026-12-02"),
        ("lunedì 7 dicembre", "2026-12-07"),
        ("March 12", "2027-03-12"),
        ("12th of March", "2027-03-12"),
        ("the 5th of may 2027", "2027-05-05"),
        ("Friday, December 4th", "2026-12-04"),
        ("29 febbraio", "2028-02-29"),
        ("venerdì", "2026-12-04"),
        ("lunedì", "2026-12-07"),
        ("venerdì prossimo", "2026-12-04"),
        ("next monday", "2026-12-07"),
        ("fra 3 giorni", "2026-12-03"),
        ("tra una settimana", "2026-12-07"),
        ("in two weeks", "2026-12-14"),
    ],
)
def test_date_in_both_languages_is_read(text: str, expected: str) -> None:
    assert read("date", text, "it") == expected
    assert read("date", text, "en") == expected


@pytest.mark.parametrize(
    "text",
    ["", "31/02", "0/1", "32 marzo", "0 marzo", "martedì 7 dicembre", "13/13", "marzo", "12",
     "domani alle 8", "oggi?", "2026-13-01", "fra 99999999 giorni", "12 marzo 27", "presto",
     "1/1/0000", "2" * 5000],
)  # fmt: skip
def test_date_of_anything_else_is_no_answer(text: str) -> None:
    assert read("date", text) is ...


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1", "a7"),
        ("2)", "b3"),
        ("la terza", "c9"),
        ("the second one", "b3"),
        ("numero 3", "c9"),
        ("due", "b3"),
        ("Anna Verdi (mail)", "b3"),
        ("anna verdi", "b3"),
        ("ANNA (TELEGRAM)", "c9"),
        ("c9", "c9"),
        ("anna", ...),
        ("4", ...),
        ("0", ...),
        ("sì", ...),
        ("Anna Verdi? non so", ...),
        ("", ...),
        ("che ore sono", ...),
    ],
)
def test_choice_by_number_label_or_key(text: str, expected: Any) -> None:
    assert read("choice", text, options=PEOPLE) == expected


@pytest.mark.parametrize(("text", "expected"), [("2", ...), ("10", "k10"), ("dieci", ...)])
def test_choice_among_numbers_means_the_number_itself(text: str, expected: Any) -> None:
    """ "2" must not quietly become the second option, which is ten."""
    options = (Option("k5", "5 copie"), Option("k10", "10"), Option("k20", "20"))

    assert read("choice", text, options=options) == expected


def test_choice_key_in_digits_gives_way_to_what_the_person_sees() -> None:
    options = (Option("2", "Documenti"), Option("1", "Note"))

    assert read("choice", "1", options=options) == "2"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1, 3", ["a7", "c9"]),
        ("3 e 1", ["c9", "a7"]),
        ("1; 1; 2", ["a7", "b3"]),
        ("la prima e la terza", ["a7", "c9"]),
        ("Anna Verdi", ["b3"]),
        ("tutti", ["a7", "b3", "c9"]),
        ("all", ["a7", "b3", "c9"]),
        ("nessuno", []),
        ("none", []),
        ("1, pippo", ...),
        ("", ...),
        ("1, 9", ...),
    ],
)
def test_multi_choice_by_numbers_labels_or_all(text: str, expected: Any) -> None:
    assert read("multi_choice", text, options=PEOPLE) == expected


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("text", "  Verbale di lunedì ", "Verbale di lunedì"),
        ("text", "   ", ...),
        ("text", "x" * 10_000, ...),
        ("secret", "correct horse", "correct horse"),
        ("secret", "x" * 1001, ...),
        ("file_path", "~/Documenti/a b.txt", "~/Documenti/a b.txt"),
        ("file_path", "note/a\0.md", ...),
        ("file_path", "a\nb", ...),
        ("location", "via Roma 12, Torino", {"address": "via Roma 12, Torino"}),
        ("location", "45.07, 7.68", {"lat": 45.07, "lon": 7.68}),
        ("location", "-33.86 151.21", {"lat": -33.86, "lon": 151.21}),
        ("location", "95.0, 7.68", ...),
        ("location", "...", ...),
        ("location", "", ...),
        ("location", "x" * 10_000, ...),
    ],
)
def test_free_kinds_take_what_fits(kind: str, text: str, expected: Any) -> None:
    assert read(kind, text) == expected


def test_secret_is_not_said_again() -> None:
    assert parse_answer(field("secret"), "hunter2", lang="it", today=TODAY) == Answer("hunter2")


@pytest.mark.parametrize("text", ["salta", "Skip", "-", "niente"])
def test_optional_field_passed_over_has_its_default(text: str) -> None:
    asked = Field("n", "Quante?", FieldKind.NUMBER, optional=True, default=5)

    answer = parse_answer(asked, text, lang="it", today=TODAY)

    assert answer == Answer(5, skipped=True)
    assert parse_answer(field("number"), text, lang="it", today=TODAY) is None


@settings(max_examples=300, deadline=None)
@given(
    text=st.text(max_size=80), kind=st.sampled_from(FieldKind), lang=st.sampled_from(["it", "en"])
)
def test_answer_of_any_text_is_json_or_nothing(text: str, kind: FieldKind, lang: str) -> None:
    answer = parse_answer(field(kind, options=PEOPLE), text, lang=lang, today=TODAY)

    if answer is not None:
        assert isinstance(answer.value, str | bool | int | float | list | dict)
        assert answer.value == answer.value  # no NaN


_WORDS = "uno due tre un a and e mezzo virgola cento mille hundred thousand venti twenty 12 marzo \
march lunedi fra in giorni next il the of 3 , . / - first primo".split()


@settings(max_examples=300, deadline=None)
@given(
    words=st.lists(st.sampled_from(_WORDS), max_size=7), kind=st.sampled_from(["number", "date"])
)
def test_answer_of_any_words_never_breaks(words: list[str], kind: str) -> None:
    parse_answer(field(kind), " ".join(words), lang="it", today=TODAY)


@given(number=st.integers(0, 999_999))
def test_number_written_with_separators_means_the_same(number: int) -> None:
    assert read("number", f"{number:,}", "en") == number
    assert read("number", f"{number:,}".replace(",", "."), "it") == number


@given(day=st.dates(date(2000, 1, 1), date(2099, 12, 31)))
def test_date_written_in_full_means_itself(day: date) -> None:
    assert read("date", day.isoformat()) == day.isoformat()
    assert read("date", f"{day.day}/{day.month}/{day.year}") == day.isoformat()


# -- buttons -----------------------------------------------------------------------------------


def test_button_of_an_option_gives_what_its_label_would() -> None:
    for option in PEOPLE:
        one = field("choice", options=PEOPLE)
        many = field("multi_choice", options=PEOPLE)
        assert answer_of_choice(one, option.key) == parse_answer(
            one, option.label, lang="it", today=TODAY
        )
        assert answer_of_choice(many, option.key) == Answer([option.key], option.label)
    assert answer_of_choice(field("choice", options=PEOPLE), "zz") is None


def test_button_of_yes_or_no_gives_a_truth() -> None:
    assert answer_of_choice(field("yes_no"), YES) == Answer(True, YES)
    assert answer_of_choice(field("yes_no"), NO) == Answer(False, NO)
    assert answer_of_choice(field("yes_no"), "always") is None


# -- which question ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "annulla",
        "Lascia stare.",
        "lascia perdere",
        "cancel",
        "Forget it!",
        "never mind",
        "/cancel",
    ],
)
def test_cancel_in_both_languages_drops_the_newest(text: str) -> None:
    older, newer = question("older", age_s=60), question("newer")

    assert is_cancel(text)
    assert chosen([newer, older], text) == "newer"
    assert chosen([older, newer], text) == "newer"


@pytest.mark.parametrize(
    "text", ["annulla l'appuntamento di domani", "cancel task 42", "annulla" + " " * 500 + "tutti"]
)
def test_cancel_of_something_else_is_a_request(text: str) -> None:
    assert not is_cancel(text)
    assert chosen([question("q")], text) is None


NAME = Field("name", "Che nome?", FieldKind.TEXT)
SECRET = Field("pw", "Parola d'ordine?", FieldKind.SECRET)
PATH = Field("p", "Quale file?", FieldKind.FILE_PATH)


@pytest.mark.parametrize(
    ("kind", "asked", "text", "is_answer"),
    [
        ("approval", None, "sì", True),
        ("approval", None, "sì, ma che ore sono?", False),
        ("approval", None, "che ore sono", False),
        ("approval", None, "3", False),
        ("cap", None, "ok", True),
        ("inputs", NAME, "Verbale", True),
        ("inputs", NAME, "Verbale della riunione", True),
        ("inputs", NAME, "che ore sono?", False),
        ("inputs", NAME, "che ore sono", False),
        ("inputs", NAME, "trova i PDF di questa settimana", False),
        ("inputs", NAME, "what time is it", False),
        ("inputs", NAME, "grazie", False),
        ("inputs", NAME, "x" * 10_000, False),
        ("inputs", SECRET, "hunter2?", True),
        ("inputs", SECRET, "che ore sono", False),
        ("inputs", SECRET, "corretto cavallo batteria graffetta", True),
        ("inputs", PATH, "note/a.md", True),
        ("inputs", PATH, "~/Documenti/due parole.txt", True),
        ("inputs", PATH, "a.md", True),
        ("inputs", PATH, "dimmi che ore sono", False),
        ("location", None, "Torino", True),
        ("location", None, "via Roma 12, Torino", True),
        ("location", None, "45.07, 7.68", True),
        ("location", None, "che ore sono?", False),
        ("location", None, "dimmi che ore sono", False),
        ("location", None, "grazie", False),
        ("location", None, "ok", False),
        ("location", None, "no", False),
        ("location", None, "penso che non te lo dirò mai", False),
        ("location", None, "", False),
    ],
)
def test_plain_text_answers_only_with_the_shape(
    kind: str, asked: Field | None, text: str, is_answer: bool
) -> None:
    open_one = question("q", SuspensionKind(kind), *([asked] if asked else []))

    assert chosen([open_one], text) == ("q" if is_answer else None)


def test_plain_yes_never_reaches_past_the_newest() -> None:
    open_ones = [
        question("form", SuspensionKind.INPUTS, field("number")),
        question("older", age_s=30),
    ]

    assert chosen(open_ones, "sì") is None
    assert chosen(open_ones, "due") == "form"


def test_reply_to_a_prompt_selects_it_whatever_it_says() -> None:
    open_ones = [question("newer"), question("older", age_s=30)]

    assert chosen(open_ones, "sì", "m-older") == "older"
    assert chosen(open_ones, "boh", "turn:older") == "older"
    assert chosen(open_ones, "annulla", "m-older") == "older"


def test_reply_to_another_message_answers_nothing() -> None:
    assert chosen([question("q")], "sì", "m-of-yesterday") is None
    assert chosen([], "sì") is None


# -- forms -------------------------------------------------------------------------------------


def test_form_is_asked_field_by_field() -> None:
    form = question("q", SuspensionKind.INPUTS, NAME, PATH)

    assert (form.asked, form.is_last) == (NAME, False)
    assert with_answer(form, Answer("Verbale")) == {"name": "Verbale"}


@pytest.mark.parametrize(
    ("kind", "asked"),
    [("approval", FieldKind.YES_NO), ("cap", FieldKind.YES_NO), ("location", FieldKind.LOCATION)],
)
def test_question_without_fields_asks_what_its_kind_says(kind: str, asked: FieldKind) -> None:
    one = question("q", SuspensionKind(kind))

    assert one.asked.kind is asked
    assert one.is_last


@pytest.mark.parametrize(
    ("kind", "scheduled", "wished_s", "expected_s"),
    [
        ("approval", False, None, 600),
        ("inputs", False, None, 600),
        ("location", False, None, 300),
        ("approval", True, None, 3600),
        ("inputs", False, 60, 60),
        ("inputs", False, 86_400, 3600),
        ("inputs", False, -5, 1),
    ],
)
def test_question_stays_open_for_its_time(
    kind: str, scheduled: bool, wished_s: float | None, expected_s: int
) -> None:
    ttl = ttl_of(SuspensionKind(kind), scheduled=scheduled, wished_s=wished_s)

    assert ttl == timedelta(seconds=expected_s)


def test_field_survives_json() -> None:
    asked = Field("w", "Chi?", FieldKind.CHOICE, PEOPLE, optional=True, default="a7")

    assert Field.from_json(asked.to_json()) == asked
