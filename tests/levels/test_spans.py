"""What is found in a person's text, by type."""

from __future__ import annotations

import pytest

from core.levels.amounts import Amount, direction_in, operation_in
from core.levels.number_words import number_of
from core.levels.spans import Spans, find_spans


def _paths(text: str, grade: str = "said") -> list[str]:
    return [path.text for path in find_spans(text).paths if path.grade == grade]


@pytest.mark.parametrize(
    ("word", "number"),
    [("tre", 3), ("three", 3), ("venti", 20), ("ventuno", 21), ("trentotto", 38),
     ("twenty-five", 25), ("cento", 100), ("dozen", 12), ("casa", None)],
)  # fmt: skip
def test_number_word_in_either_language_is_its_number(word: str, number: int | None) -> None:
    assert number_of(word) == number


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("apri ~/orto/semine.md, grazie", ["~/orto/semine.md"]),
        ("read /srv/nas/app.log.", ["/srv/nas/app.log"]),
        ("confronta Note/a.txt e b.csv", ["Note/a.txt", "b.csv"]),
        ('leggi "Lista della spesa.txt"', ["Lista della spesa.txt"]),
        ("what is in ./build/?", ["./build/"]),
        ("un voto di 7/10 e/o altro, 1.5 kg il 12/03/2026", []),
        ("scarica https://a.example/b/c.html", []),
        ("apri il 7z di archivio.7z", ["archivio.7z"]),
    ],
)
def test_paths_of_a_text_are_what_has_their_form(text: str, paths: list[str]) -> None:
    assert _paths(text) == paths


@pytest.mark.parametrize(
    ("text", "name", "grade", "role"),
    [
        ("sposta a.txt nella cartella Vacanze", "Vacanze", "named", "target"),
        ("move it into the Old Photos folder", "Photos", "named", ""),
        ("cosa c'è nella cartella Foto Mare?", "Foto Mare", "named", "target"),
        ("trova i pdf in Documenti", "Documenti", "hinted", "target"),
        ("prendi le foto da Scaricati", "Scaricati", "hinted", "source"),
        ("rinomina a.txt in b.txt", "b.txt", "said", "target"),
        ("copy from a.txt please", "a.txt", "said", "source"),
    ],
)
def test_name_of_a_folder_has_its_grade_and_role(
    text: str, name: str, grade: str, role: str
) -> None:
    found = {path.text: path for path in find_spans(text).paths}

    assert name in found
    assert found[name].grade == grade
    assert role in ("", found[name].role)


@pytest.mark.parametrize(
    "text", ["trovali in ordine", "what is on at the end of the week", "in fondo", "nel 2024"]
)
def test_words_of_time_and_order_are_no_folders(text: str) -> None:
    assert find_spans(text).paths == ()


@pytest.mark.parametrize(
    ("text", "urls"),
    [
        ("apri https://a.example/x?y=1.", ("https://a.example/x?y=1",)),
        ("is radio.example/stato up?", ("radio.example/stato",)),
        ("www.mare.example, poi http://127.0.0.1:80/p.html",
         ("www.mare.example", "http://127.0.0.1:80/p.html")),
        ("leggi appunti.md", ()),
    ],
)  # fmt: skip
def test_addresses_lose_the_punctuation_behind_them(text: str, urls: tuple[str, ...]) -> None:
    assert find_spans(text).urls == urls


@pytest.mark.parametrize(
    ("text", "amounts"),
    [
        ("le ultime tre righe", [Amount(3, "lines", "last")]),
        ("first 15 lines", [Amount(15, "lines", "first")]),
        ("l'ultima riga", [Amount(1, "lines", "last")]),
        ("righe da 10 a 20", [Amount(10, "lines", "from"), Amount(20, "lines", "to")]),
        ("lines 5-9", [Amount(5, "lines", "from"), Amount(9, "lines", "to")]),
        ("negli ultimi 3 giorni", [Amount(3, "days", "last")]),
        ("in the past two weeks", [Amount(14, "days", "last")]),
        ("questa settimana", [Amount(7, "days", "last")]),
        ("modificati oggi", [Amount(1, "days", "last")]),
        ("older than 30 days", [Amount(30, "days", "older")]),
        ("più grandi di 2,5 MB", [Amount(2_500_000, "bytes", "min")]),
        ("over 2 GB", [Amount(2_000_000_000, "bytes", "min")]),
        ("sotto i 10 kb", [Amount(10_000, "bytes", "max")]),
        ("file vuoti", [Amount(0, "bytes", "max")]),
        ("200 euro a Mario", [Amount(200, "other")]),
        ("a massimo 5 km da qui", [Amount(5, "km", "max")]),
        ("within 500 metres", [Amount(0.5, "km")]),
        ("i 10 più recenti", [Amount(10)]),
        ("sei un robot?", []),
        ("a file, un file, one file", []),
    ],
)
def test_amounts_have_unit_and_side(text: str, amounts: list[Amount]) -> None:
    assert list(find_spans(text).amounts) == amounts


@pytest.mark.parametrize(
    ("text", "patterns"),
    [
        ("tutti i pdf", ("*.pdf",)),
        ("the isos", ("*.iso",)),
        ("i .bak e *.tmp", ("*.bak", "*.tmp")),
        ("le foto del mare", ("*.jpg", "*.jpeg", "*.png", "*.gif", "*.webp", "*.heic")),
        ("un file chiamato bolletta", ("*bolletta*",)),
        ("cosa c'è?", ()),
        ("leggi a.pdf", ()),
    ],
)
def test_patterns_come_from_endings_kinds_and_names(text: str, patterns: tuple[str, ...]) -> None:
    assert find_spans(text).patterns == patterns


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("che ore sono a buenos aires adesso?", "buenos aires"),
        ("what time is it in Oslo right now", "Oslo"),
        ("Lima time?", "Lima"),
        ("ora di Nuova Delhi", "Nuova Delhi"),
        ("ora a new york", "new york"),
    ],
)
def test_place_after_a_preposition_is_found_whole(text: str, place: str) -> None:
    assert place in find_spans(text).places


@pytest.mark.parametrize(
    ("text", "coords"),
    [
        ("che cosa c'è a 44.6471, 10.9252?", ("44.6471, 10.9252",)),
        ("what is at -33.8568,151.2153.", ("-33.8568,151.2153",)),
        ("versione 1.10, 2.0.1 e 3,50 euro", ()),
        ("10.0.0.1 e 192.168.1.10", ()),
    ],
)
def test_coordinates_are_pairs_of_degrees(text: str, coords: tuple[str, ...]) -> None:
    assert find_spans(text).coords == coords


@pytest.mark.parametrize(
    ("text", "contents"),
    [
        ("aggiungi 'pane e latte' a lista.txt", ("pane e latte",)),
        ("write hello world to greet.txt and stop", ("hello world",)),
        ("scrivi la parola pronto nel file stato.txt", ("pronto",)),
        ("annota in idee.md che il tetto perde", ("il tetto perde",)),
        ("put this into note.txt: call Ada", ("call Ada",)),
        ("salva il testo di https://x.example/a in c.txt", ()),
        ("save it to c.txt", ()),
    ],
)
def test_contents_are_the_words_to_be_written(text: str, contents: tuple[str, ...]) -> None:
    assert find_spans(text).contents == contents


@pytest.mark.parametrize(
    ("text", "sought"),
    [
        ("le righe con timeout in app.log", ("timeout",)),
        ("lines containing ERROR in a.log", ("ERROR",)),
        ("quelle che contengono saldo", ("saldo",)),
    ],
)
def test_words_to_filter_by_are_found(text: str, sought: tuple[str, ...]) -> None:
    assert find_spans(text).sought == sought


@pytest.mark.parametrize(
    ("text", "direction"),
    [("i più grandi", True), ("le più vecchie", False), ("newest first", True),
     ("più grandi di 3 MB", None), ("in ordine alfabetico", False), ("tutti", None)],
)  # fmt: skip
def test_direction_is_said_by_superlatives_only(text: str, direction: bool | None) -> None:
    assert direction_in(text) is direction


@pytest.mark.parametrize(
    ("text", "operation"),
    [("quanto pesano in tutto i video", "sum"), ("how much space do they take up", "sum"),
     ("quanti file ci sono in tutto?", None), ("the average size", "avg"), ("elenca", None)],
)  # fmt: skip
def test_operation_is_said_by_its_words(text: str, operation: str | None) -> None:
    assert operation_in(text) == operation


def test_antecedents_stand_in_only_where_nothing_is_named() -> None:
    earlier = find_spans("leggi ~/a.md")

    stood_in = find_spans("e le ultime due righe?").with_antecedents(earlier)
    own = find_spans("e b.md?").with_antecedents(earlier)

    assert [path.text for path in stood_in.paths] == ["~/a.md"]
    assert [path.text for path in own.paths] == ["b.md"]


@pytest.mark.parametrize(
    "text",
    ["", " ", "…", "«»", "'" * 50, "/" * 9000, "a/" * 9000, "." * 9000, "1" * 9000, "*" * 500,
     "\U0001f600 ciao", "ſtraße İstanbul ﬁne 5 rıghe", "da " * 3000, "x.y" * 3000],
    ids=range(14),
)  # fmt: skip
def test_find_spans_of_odd_text_returns(text: str) -> None:
    assert isinstance(find_spans(text), Spans)
