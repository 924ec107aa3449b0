"""Markdown tables on a phone: nothing wider than it shows, nothing lost, long ones as a file."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.telegram.formatting import Rendered, Words, render
from bot.telegram.tables import MOST_ALIGNED_ROWS, MOST_COLUMNS, MOST_ROWS, width
from core.messages import Block, Reply

WORDS = Words(more_rows=lambda count: f"altre {count} righe", table_name="tabella")


def rendered(text: str) -> Rendered:
    return render(Reply((Block("prose", text),), "it"), WORDS)


def table(*rows: tuple[str, ...]) -> str:
    head, *body = ("| " + " | ".join(row) + " |" for row in rows)
    return "\n".join([head, "|" + "---|" * len(rows[0]), *body])


def test_narrow_table_becomes_aligned_columns_with_numbers_to_the_right():
    text = "Ecco:\n\n" + table(("Mese", "Spesa"), ("Gennaio", "8,50 €"), ("Febbraio", "112,00 €"))

    (part,) = rendered(text + "\n\nFatto.").parts

    assert part.text == (
        "Ecco:\n\n"
        "Mese         Spesa\n"
        "────────  ────────\n"
        "Gennaio     8,50 €\n"
        "Febbraio  112,00 €\n\n"
        "Fatto."
    )
    (span,) = part.spans
    assert (span.kind, part.text[span.start : span.end].count("\n")) == ("pre", 3)


def test_wide_table_becomes_short_lines_under_its_headings():
    long = "una descrizione che non sta in una riga"
    (part,) = rendered(table(("Nome", "Che cosa"), ("Anna", long), ("Luca", "—"))).parts

    assert part.text == f"Nome · Che cosa\n• Anna · {long}\n• Luca · —"
    assert [(s.kind, part.text[s.start : s.end]) for s in part.spans] == [
        ("bold", "Nome · Che cosa")
    ]


def test_wide_table_of_many_columns_tells_each_cell_with_its_heading():
    row = ("Anna", "responsabile acquisti", "anna@example.com", "")
    (part,) = rendered(table(("Nome", "Ruolo", "Posta", "Telefono"), row)).parts

    assert part.text == (
        "Nome · Ruolo · Posta · Telefono\n"
        "• Anna\n  Ruolo: responsabile acquisti\n  Posta: anna@example.com"
    )


def test_long_table_shows_its_first_rows_and_goes_along_as_a_file():
    rows = [(f"file-{n:03}.pdf", f"{n} kB") for n in range(40)]

    result = rendered(table(("Nome", "Peso"), *rows))

    (part,) = result.parts
    assert part.text.count(".pdf") == MOST_ROWS
    assert part.text.endswith("\naltre 32 righe")
    (file,) = result.tables
    assert file.name == "tabella.csv"
    read = list(csv.reader(io.StringIO(file.data.decode("utf-8-sig")), delimiter=";"))
    assert [tuple(row) for row in read] == [("Nome", "Peso"), *rows]


def test_two_long_tables_are_two_files():
    rows = [(f"una voce abbastanza lunga numero {n}", "x") for n in range(MOST_ROWS + 1)]
    text = table(("A", "B"), *rows)

    assert [f.name for f in rendered(f"{text}\n\ne poi\n\n{text}").tables] == [
        "tabella.csv",
        "tabella-2.csv",
    ]


def test_cells_of_a_file_are_never_formulas():
    rows = [("=cmd()", "-5,2"), ("+39 011", "@SUM(A1)"), ("-x", "-")]
    rows += [(f"r{n}", "x") for n in range(MOST_ALIGNED_ROWS)]

    (file,) = rendered(table(("a", "b"), *rows)).tables

    assert file.data.decode("utf-8-sig").splitlines()[1:4] == [
        "'=cmd();-5,2",
        "+39 011;'@SUM(A1)",
        "'-x;-",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "```\n| a | b |\n|---|---|\n| 1 | 2 |\n```",
        "a | b non è una tabella",
        "| una riga sola |",
    ],
)
def test_bars_that_are_no_table_stay_as_they_are(text):
    (part,) = rendered(text).parts

    assert part.text == text.removeprefix("```\n").removesuffix("\n```")


def test_markup_in_cells_is_read_not_shown():
    (part,) = rendered(table(("**x**", "y"), ("`a\\|b`", "[qui](https://a.example)"))).parts

    assert part.text == "x    y\n───  ───────────────────────\na|b  qui (https://a.example)"


CELL = st.text(st.sampled_from("abè 12,.€😀中<&"), min_size=1, max_size=18).map(
    lambda cell: cell.strip() or "z"
)


@settings(max_examples=150, deadline=None)
@given(st.integers(1, 5).flatmap(lambda n: st.lists(st.tuples(*[CELL] * n), min_size=2)))
def test_no_line_of_columns_is_wider_than_a_phone_and_no_cell_is_lost(rows):
    result = rendered("\n" + table(*rows))

    shown = "\n".join(part.text for part in result.parts)
    for part in result.parts:
        for span in (s for s in part.spans if s.kind == "pre"):
            assert all(
                width(line) <= MOST_COLUMNS
                for line in part.text[span.start : span.end].split("\n")
            )
    held = shown + "".join(f.data.decode("utf-8-sig") for f in result.tables)
    assert all(" ".join(cell.split()) in held for row in rows for cell in row)
