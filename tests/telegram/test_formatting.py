"""Replies as Telegram messages: nothing visible is lost, everything fits, code stays code."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.telegram.formatting import (
    MAX_PARTS,
    Rendered,
    Words,
    render,
    unformatted,
    with_note,
)
from bot.telegram.parts import MAX_UNITS, Part, Span, clean, has_visible, split
from core.messages import Block, Reply


def rendered(*blocks: tuple[str, str]) -> Rendered:
    return render(Reply(tuple(Block(kind, text) for kind, text in blocks), "it"))  # type: ignore[arg-type]


def prose(text: str) -> Part:
    (part,) = rendered(("prose", text)).parts
    return part


def units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def shown(part: Part) -> list[tuple[str, str]]:
    return [(span.kind, part.text[span.start : span.end]) for span in part.spans]


@pytest.mark.parametrize(
    "text",
    [
        "*_[ ... <nobody@example.com> and <b>x",
        "a < b && c > d, &amp; stays &lt;b&gt;",
        "2*3*4 = 24 and $5 to $6, x || y",
        "__init__ and snake_case_name and a_b_c",
        "[nota]: questo non sparisce",
        "<https://shop.example/a?b=1&c=2>",
        "C:\\Users\\anna and 50% and #hashtag",
        "~5 km, ~6 km",
    ],
)
def test_prose_with_characters_like_markup_is_shown_exactly(text):
    assert prose(text).text == text


def test_prose_markdown_becomes_entities_without_added_signs():
    part = prose("# Titolo\n\nun **peso** e `x<y>` e [qui](https://a.example/p)\n\n- uno\n- due")

    assert part.text == "Titolo\n\nun peso e x<y> e qui\n\n• uno\n• due"
    assert shown(part) == [
        ("bold", "Titolo"),
        ("bold", "peso"),
        ("code", "x<y>"),
        ("text_link", "qui"),
    ]


def test_prose_link_to_a_file_is_shown_with_its_target():
    assert prose("vedi [README](README.md)").text == "vedi [README](README.md)"


def test_prose_that_the_converter_would_shorten_is_shown_as_written():
    # The title of a link has no place in a message.
    text = 'vedi [qui](https://a.example "il titolo")'

    assert prose(text).text == text


def test_entities_after_wide_characters_count_utf16_units():
    part = prose("😀😀 **a𝔘b** fine")

    (entity,) = part.entities
    assert (entity.offset, entity.length) == (5, 4)


def test_other_blocks_are_shown_as_they_stand():
    (part,) = rendered(
        ("text", "**non** grassetto <b>"), ("code", "if x:\n    y"), ("small", "rif. 7f3a")
    ).parts

    assert part.text == "**non** grassetto <b>\n\nif x:\n    y\nrif. 7f3a"
    assert shown(part) == [("pre", "if x:\n    y"), ("italic", "rif. 7f3a")]


def test_long_code_goes_on_as_code_in_every_part():
    lines = [f"line {n:03}\n    indented {n:03}" for n in range(500)]
    parts = rendered(("prose", "```python\n" + "\n".join(lines) + "\n```\nfine")).parts

    assert len(parts) > 1
    assert all(units(part.text) <= MAX_UNITS for part in parts)
    assert all("```" not in part.text for part in parts)
    assert all(part.spans[0].language == "python" for part in parts)
    assert all(not part.text.startswith(" ") for part in parts)
    assert [line for part in parts for line in part.text.split("\n")] == [
        *"\n".join(lines).split("\n"),
        "fine",
    ]


def test_ten_thousand_characters_with_six_fences_lose_no_line():
    code = [[f"value_{f}_{n} = {n} * '{'y' * 40}'" for n in range(25)] for f in range(6)]
    text = "\n\n".join(
        f"Parte {n}, {'parole ' * 20}\n\n```python\n" + "\n".join(lines) + "\n```"
        for n, lines in enumerate(code)
    )
    parts = rendered(("prose", text)).parts

    in_code = [
        line
        for part in parts
        for kind, body in shown(part)
        if kind == "pre"
        for line in body.split("\n")
    ]
    assert in_code == [line for lines in code for line in lines]
    assert not any("```" in part.text for part in parts)


def test_reply_of_too_many_parts_becomes_its_beginning_and_a_file():
    text = "\n".join(f"riga {n} " + "x" * 60 for n in range(1000))
    result = render(Reply((Block("text", text),), "it"), Words(too_long="intera nel file"))

    assert len(result.parts) == 1
    assert result.parts[0].text.startswith("riga 0 ")
    assert result.parts[0].text.endswith("intera nel file")
    assert result.document is not None
    assert result.document.data.decode() == text


def test_reply_of_as_many_parts_as_allowed_is_no_file():
    text = "\n\n".join("y" * 4000 for _ in range(MAX_PARTS))

    result = rendered(("text", text))

    assert len(result.parts) == MAX_PARTS
    assert result.document is None


@pytest.mark.parametrize("text", ["", "  \n ", "\u200b\u200d", "\u202e\x00", "```\n```"])
def test_reply_without_anything_visible_says_so(text):
    (part,) = render(Reply((Block("prose", text),), "it"), Words(empty="vuota")).parts

    assert has_visible(part.text)


def test_clean_removes_what_no_screen_shows():
    assert clean("a\x00b\u202ec\ud800d\r\ne\tf") == "abc\ufffdd\ne\tf"


def test_note_stands_before_the_part_or_alone_when_both_do_not_fit():
    (both,) = with_note(Part("ciao", (Span("bold", 0, 4),)), "(ripetuto)")
    alone, full = with_note(Part("x" * MAX_UNITS), "(ripetuto)")

    assert shown(both) == [("italic", "(ripetuto)"), ("bold", "ciao")]
    assert (alone.text, len(full.text)) == ("(ripetuto)", MAX_UNITS)


def test_split_never_parts_an_emoji_from_what_is_joined_to_it():
    family = "👨‍👩‍👧‍👦"
    text = "x" * (MAX_UNITS - 3) + family + "y" * 50

    first, second = split(Part(text))

    assert first.text + second.text == text
    assert second.text.startswith(family)


MARKUP = "*_~`#>|[]()!\\-+=<&$"
SOURCE = st.text(
    st.one_of(
        st.sampled_from(MARKUP + " \n\n\nab1.<@:😀à"),
        st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Cn", "Co", "Cf"]),
    ),
    max_size=200,
)


# Numbers of list items are the converter's to write; the words of a fence name its language.
NUMBERS = re.compile(r"^[ >\t]*\d{1,9}[.)](?=\s|$)", re.MULTILINE)
FENCES = re.compile(r"^[ >\t]*(?:`{3,}|~{3,}).*$", re.MULTILINE)
# The line below a table's headings says how columns are aligned.
RULES = re.compile(
    r"^ {0,3}\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$", re.MULTILINE
)

# What models, file names and people write, and what has broken others.
FRAGMENTS = st.sampled_from(
    [
        *"<>&_*[]()|`~#$\\\"'",
        "<anna@example.com>",
        "anna_b@shop.example",
        "<https://shop.example/a_b?c=1&d=2>",
        "https://shop.example/x_(y)_z",
        "`a|b`",
        " ```rm -rf``` ",
        "```\n",
        "\n```python\n",
        "\n| a | b_c |\n|---|:-:|\n| 1 | <x> |\n",
        "\n| solo |\n|--|\n",
        "\n- ",
        "\n  - ",
        "\n    1. ",
        "\n> ",
        "\n\n",
        "\n",
        " ",
        "**",
        "__",
        "~~",
        "||",
        "&lt;",
        "[qui](https://a.example/p_q)",
        "[là](file.md)",
        "![foto](https://a.example/f.png)",
        "\\*",
        "😀",
        "👨‍👩‍👧",
        "𝔘",
        "🇮🇹",
        "אבג",
        "مرحبا",
        "\u200b",
        "\u200f",
        "\u2066",
        "e\u0301",
        "parola",
        "snake_case_name",
        "2*3*4",
        "$5",
        "x",
    ]
)


@settings(max_examples=500, deadline=None)
@given(st.one_of(SOURCE, st.lists(FRAGMENTS, max_size=25).map("".join)))
def test_every_visible_character_of_prose_survives_in_order(source):
    """Markup may go and signs may come; no letter, digit or other sign may be lost."""
    cleaned = clean(source)
    parts = rendered(("prose", source)).parts

    for part in parts:
        assert has_visible(part.text)
        assert units(part.text) <= MAX_UNITS
        assert within(part)
        assert is_shown_in(unformatted(part).text, part.text)
    shown_text = "".join(map(shown_with_links, parts))
    wanted = RULES.sub("", FENCES.sub("", cleaned))
    assert not has_visible(cleaned) or is_shown_in(shown_text, wanted)


def shown_with_links(part: Part) -> str:
    out, at = list[str](), 0
    for span in sorted((s for s in part.spans if s.url), key=lambda s: s.end):
        out += [part.text[at : span.end], span.url or ""]
        at = span.end
    return "".join([*out, part.text[at:]])


def is_shown_in(shown_text: str, wanted: str) -> bool:
    left = iter(NUMBERS.sub("", shown_text))
    return all(c in left for c in NUMBERS.sub("", wanted) if has_visible(c) and c not in MARKUP)


def within(part: Part) -> bool:
    """Whether every entity lies within the text, counted in UTF-16 units, on whole characters."""
    whole = part.text.encode("utf-16-le")
    return all(
        e.offset >= 0
        and e.length > 0
        and e.offset + e.length <= len(whole) // 2
        and whole[2 * e.offset : 2 * (e.offset + e.length)].decode("utf-16-le", "strict")
        for e in part.entities
    )


def test_only_the_paragraph_that_would_lose_something_is_shown_as_written():
    text = 'un **peso**\n\nvedi [qui](https://a.example "il titolo")\n\n- *uno*\n\n- due'

    part = prose(text)

    assert part.text == ('un peso\n\nvedi [qui](https://a.example "il titolo")\n\n• uno\n\n• due')


def test_plain_text_in_place_of_refused_formats_still_says_where_links_lead():
    part = prose("**vedi** [qui](https://a.example/p) e <https://b.example>")

    assert unformatted(part) == Part("vedi qui (https://a.example/p) e <https://b.example>")


@settings(max_examples=200, deadline=None)
@given(SOURCE)
def test_text_is_shown_exactly_whatever_it_holds(source):
    (part,) = rendered(("text", source)).parts

    if has_visible(clean(source)):
        assert part.text == clean(source).strip()


@settings(max_examples=200, deadline=None)
@given(
    st.text(st.sampled_from("ab \n\n😀é"), max_size=600),
    st.integers(20, 80),
    st.lists(st.tuples(st.integers(0, 600), st.integers(1, 200)), max_size=3),
)
def test_split_keeps_size_text_and_formats(text, most, ranges):
    spans = tuple(
        Span("pre", start, min(start + length, len(text)))
        for start, length in ranges
        if start < len(text)
    )
    parts = list(split(Part(text, spans), max_units=most))

    assert all(0 < units(part.text) <= most for part in parts)
    assert "".join("".join(p.text.split()) for p in parts) == "".join(text.split())
    assert all(0 <= s.start <= s.end <= len(p.text) for p in parts for s in p.spans)
    assert sum(
        len("".join(p.text[s.start : s.end].split())) for p in parts for s in p.spans
    ) == sum(len("".join(text[s.start : s.end].split())) for s in spans)
