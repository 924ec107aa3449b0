"""The drawings of the console: sound markup, nothing from outside, the same said as a table."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from bot.console.charts import (
    HEIGHT,
    WIDTH,
    Figure,
    Series,
    Span,
    bar_chart,
    line_chart,
    span_chart,
    standalone,
)

_SVG = "{http://www.w3.org/2000/svg}"


def _whole(value: float) -> str:
    return f"{value:.0f}"


def _line(*values: float | None, title: str = "Reuse", top: float | None = None) -> Figure:
    labels = [str(i) for i in range(len(values))]
    return line_chart(
        "k", title, "What it shows", labels, [Series("rate", values)], say=_whole, top=top
    )


def _parse(figure: Figure) -> ET.Element:
    return ET.fromstring(standalone(figure))


@pytest.mark.parametrize(
    "values",
    [(), (0.0,), (None,), (1.0, None, 3.0), (1e9, 2.0), (float("inf"), 1.0), (0.001, 0.002)],
)
def test_line_chart_of_any_values_is_sound_markup_within_its_frame(values):
    svg = _parse(_line(*values))

    assert svg.find(f"{_SVG}title") is not None
    for line in svg.iter(f"{_SVG}polyline"):
        for spot in line.attrib["points"].split():
            x, y = map(float, spot.split(","))
            assert 0 <= x <= WIDTH
            assert 0 <= y <= HEIGHT


def test_line_chart_with_a_day_without_value_is_a_gap_and_no_zero():
    svg = _parse(_line(50.0, 60.0, None, 70.0, 80.0, top=100))

    assert len(list(svg.iter(f"{_SVG}polyline"))) == 2


def test_line_chart_with_a_day_alone_shows_a_dot():
    assert len(list(_parse(_line(None, 60.0, None)).iter(f"{_SVG}circle"))) == 1


def test_chart_with_foreign_words_escapes_them():
    title = '<script>alert("x")</script>'

    figure = _line(1.0, 2.0, title=title)

    assert "<script" not in figure.svg
    assert _parse(figure).findtext(f"{_SVG}title") == title


def test_chart_names_no_other_place_and_no_style_of_its_own():
    figure = bar_chart("k", "t", "d", ["1"], [Series("s", (4.0,))], say=_whole)

    assert "style" not in figure.svg
    assert "http" not in figure.svg
    assert "url(" not in figure.svg


def test_bar_chart_stacks_the_series_of_a_day():
    figure = bar_chart(
        "k",
        "t",
        "d",
        ["1", "2"],
        [Series("in", (30.0, 0.0)), Series("out", (10.0, 0.0))],
        say=_whole,
    )
    low, high = _parse(figure).iter(f"{_SVG}rect")

    assert float(low.attrib["height"]) == pytest.approx(3 * float(high.attrib["height"]), rel=0.01)
    bottom_of_high = float(high.attrib["y"]) + float(high.attrib["height"])
    assert bottom_of_high == pytest.approx(float(low.attrib["y"]), abs=0.2)


def test_table_says_what_the_drawing_shows():
    figure = line_chart(
        "k", "t", "d", ["mon", "tue"], [Series("rate", (50.0, None))], say=lambda v: f"{v:.0f} %"
    )

    assert figure.head == ("", "rate")
    assert figure.rows == (("mon", "50 %"), ("tue", "–"))


def test_span_chart_orders_by_powers_of_ten_and_says_what_is_missing():
    figure = span_chart(
        "k",
        "t",
        "d",
        [Span("memory", 10.0, 100.0), Span("model", 1000.0, 10_000.0), Span("other", None, None)],
        say=_whole,
        columns=("level", "median", "p95"),
    )
    first, second = _parse(figure).iter(f"{_SVG}circle")
    lines = [one for one in _parse(figure).iter(f"{_SVG}line") if "span" in one.attrib["class"]]

    start, end = float(lines[0].attrib["x1"]), float(lines[0].attrib["x2"])
    assert float(second.attrib["cx"]) - float(first.attrib["cx"]) == pytest.approx(
        2 * (end - start), abs=0.3
    )
    assert figure.rows[2] == ("other", "–", "–")


def test_figure_without_a_value_says_that_it_is_empty():
    assert _line(None, None).empty
    assert _line(0.0, 0.0).empty
    assert not _line(0.0, 1.0).empty
