"""Figures drawn as inline SVG. Pure: values in, markup out; words and numbers come ready-made.

The markup names classes and no colours, so that the page's style decides them for light and dark;
`standalone` puts a style of its own into a drawing that stands in no page. Every figure carries
title and description, and `Figure.rows` says the same as a table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 360, 200
_LEFT, _RIGHT, _TOP, _BOTTOM = 54, 22, 12, 28
_MOST_LABELS = 5
_ROW = 42
_NAMES = 92

STYLE = """
.drawing { font: 13px system-ui, sans-serif; background: #fff; }
.label { fill: #5d6258; }
.label.name { fill: #23261f; }
.axis { stroke: #dedacf; stroke-width: 1; }
.ink-1 { fill: #17766d; }
.ink-2 { fill: #b3762a; }
.line-1 { fill: none; stroke: #17766d; stroke-width: 2.5; }
.line-2 { fill: none; stroke: #b3762a; stroke-width: 2.5; }
.area { opacity: .14; }
.span { stroke-width: 6; stroke-linecap: round; opacity: .4; }
"""

Say = Callable[[float], str]


@dataclass(frozen=True, slots=True)
class Series:
    """One value a label; None where there is none, which is no zero."""

    name: str
    values: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class Span:
    """From a low to a high value, both above zero; None: nothing was measured."""

    name: str
    low: float | None
    high: float | None


class Drawing(str):
    """Markup in which every text is escaped already, so that templates take it as it is."""

    __slots__ = ()

    def __html__(self) -> str:
        return str(self)


@dataclass(frozen=True, slots=True)
class Figure:
    """A drawing and the same as a table: `head` names the columns, `rows` are texts. `keyed`: its
    colours need a key. `empty`: there is nothing to see."""

    title: str
    svg: Drawing
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    empty: bool = False
    keyed: bool = False
    note: str = ""


def line_chart(
    key: str,
    title: str,
    desc: str,
    labels: Sequence[str],
    series: Sequence[Series],
    *,
    say: Say,
    top: float | None = None,
    corner: str = "",
) -> Figure:
    """Lines over labels of the same distance; a day without a value is a gap. `key` is unique
    within the page, `top` the end of the scale (None: from the values), `corner` heads the labels
    in the table."""
    ticks = _ticks(_most(series) if top is None else top)
    x = _places(len(labels), middle=False)
    parts = [*_scale(ticks, say), *_labels(labels, x)]
    for index, one in enumerate(series, start=1):
        for run in _runs(one.values):
            spots = [(x[i], _y(value, ticks[-1])) for i, value in run]
            path = " ".join(f"{px:.1f},{py:.1f}" for px, py in spots)
            if len(spots) == 1:
                dot_x, dot_y = spots[0]
                parts.append(
                    f'<circle class="ink-{index}" cx="{dot_x:.1f}" cy="{dot_y:.1f}" r="3"/>'
                )
                continue
            if len(series) == 1:
                ground = f"{_y(0, ticks[-1]):.1f}"
                outline = f"{spots[0][0]:.1f},{ground} {path} {spots[-1][0]:.1f},{ground}"
                parts.append(f'<polygon class="area ink-{index}" points="{outline}"/>')
            parts.append(f'<polyline class="line-{index}" points="{path}"/>')
    return _figure(key, title, desc, labels, series, say, parts, corner)


def bar_chart(
    key: str,
    title: str,
    desc: str,
    labels: Sequence[str],
    series: Sequence[Series],
    *,
    say: Say,
    corner: str = "",
) -> Figure:
    """Bars over labels, those of one label on top of each other, the first series lowest."""
    sums = [sum(one.values[i] or 0 for one in series) for i in range(len(labels))]
    ticks = _ticks(max(sums, default=0))
    x = _places(len(labels), middle=True)
    wide = max(2.0, (WIDTH - _LEFT - _RIGHT) / max(len(labels), 1) * 0.7)
    parts = [*_scale(ticks, say), *_labels(labels, x)]
    for i, place in enumerate(x):
        base = 0.0
        for index, one in enumerate(series, start=1):
            value = one.values[i] or 0
            if value <= 0:
                continue
            upper, lower = _y(base + value, ticks[-1]), _y(base, ticks[-1])
            parts.append(
                f'<rect class="ink-{index}" x="{place - wide / 2:.1f}" y="{upper:.1f}"'
                f' width="{wide:.1f}" height="{max(lower - upper, 0.5):.1f}"/>'
            )
            base += value
    return _figure(key, title, desc, labels, series, say, parts, corner)


def span_chart(
    key: str,
    title: str,
    desc: str,
    spans: Sequence[Span],
    *,
    say: Say,
    columns: tuple[str, str, str],
    none: str = "–",
    note: str = "",
) -> Figure:
    """A dot at each low value and a bar to the high one, on a scale of powers of ten. `columns`
    name the rows, the low and the high value; `none` stands for what was not measured, `note`
    below the drawing."""
    known = [one for one in spans if one.low and one.high]
    low = 10.0 ** math.floor(math.log10(min((one.low or 1 for one in known), default=1)))
    high = 10.0 ** math.ceil(math.log10(max((one.high or 1 for one in known), default=10)))
    decades = max(round(math.log10(high / low)), 1)
    height = _TOP + _ROW * len(spans) + _BOTTOM
    span_of = WIDTH - _NAMES - _RIGHT

    def at(value: float) -> float:
        part = math.log10(max(value, low) / low) / decades
        return _NAMES + span_of * min(part, 1)

    parts = []
    every = max(1, math.ceil(decades / 5))
    for step in range(0, decades + 1, every):
        tick = low * 10**step
        parts.append(
            f'<line class="axis" x1="{at(tick):.1f}" x2="{at(tick):.1f}" y1="{_TOP}"'
            f' y2="{height - _BOTTOM}"/>'
            f'<text class="label" x="{at(tick):.1f}" y="{height - 8}" text-anchor="middle">'
            f"{escape(say(tick))}</text>"
        )
    for number, one in enumerate(spans):
        y = _TOP + _ROW * number + _ROW / 2
        parts.append(f'<text class="label name" x="0" y="{y + 4:.0f}">{escape(one.name)}</text>')
        if not one.low or not one.high:
            parts.append(f'<text class="label" x="{_NAMES}" y="{y + 4:.0f}">{escape(none)}</text>')
            continue
        begin, end = f"{at(one.low):.1f}", f"{at(one.high):.1f}"
        parts.append(
            f'<line class="span line-1" x1="{begin}" x2="{end}" y1="{y:.0f}" y2="{y:.0f}"/>'
            f'<circle class="ink-1" cx="{begin}" cy="{y:.0f}" r="5"/>'
        )
    rows = tuple(
        (one.name, say(one.low) if one.low else none, say(one.high) if one.high else none)
        for one in spans
    )
    svg = _svg(key, title, desc, parts, height)
    return Figure(title, svg, columns, rows, empty=not known, note=note)


def standalone(figure: Figure) -> str:
    """The drawing as a file of its own, with a style that needs no page."""
    head, body = figure.svg.split(">", 1)
    return f'{head} xmlns="http://www.w3.org/2000/svg"><style>{STYLE}</style>{body}'


def _figure(
    key: str,
    title: str,
    desc: str,
    labels: Sequence[str],
    series: Sequence[Series],
    say: Say,
    parts: Iterable[str],
    corner: str,
) -> Figure:
    rows = tuple(
        (
            label,
            *("–" if (value := one.values[i]) is None else say(value) for one in series),
        )
        for i, label in enumerate(labels)
    )
    head = (corner, *(one.name for one in series))
    empty = not any(value for one in series for value in one.values)
    svg = _svg(key, title, desc, parts, HEIGHT)
    return Figure(title, svg, head, rows, empty, keyed=len(series) > 1)


def _svg(key: str, title: str, desc: str, parts: Iterable[str], height: int) -> Drawing:
    safe = escape(key)
    return Drawing(
        f'<svg class="drawing" viewBox="0 0 {WIDTH} {height}" role="img"'
        f' aria-labelledby="{safe}-t {safe}-d">'
        f'<title id="{safe}-t">{escape(title)}</title><desc id="{safe}-d">{escape(desc)}</desc>'
        f"{''.join(parts)}</svg>"
    )


def _most(series: Sequence[Series]) -> float:
    return max((value for one in series for value in one.values if value is not None), default=0)


def _ticks(most: float) -> list[float]:
    """Round values from zero to just above the highest, three to five steps."""
    if not math.isfinite(most) or most <= 0:
        return [0, 1]
    raw = most / 4
    size = 10.0 ** math.floor(math.log10(raw))
    step = next(size * one for one in (1, 2, 2.5, 5, 10) if size * one >= raw * 0.999)
    return [step * number for number in range(math.ceil(most / step * 0.999) + 1)]


def _y(value: float, top: float) -> float:
    free = HEIGHT - _TOP - _BOTTOM
    return HEIGHT - _BOTTOM - free * min(max(value, 0), top) / top


def _places(count: int, *, middle: bool) -> list[float]:
    wide = WIDTH - _LEFT - _RIGHT
    if middle:
        return [_LEFT + wide * (i + 0.5) / count for i in range(count)]
    return [_LEFT + wide * (i / (count - 1) if count > 1 else 0.5) for i in range(count)]


def _scale(ticks: Sequence[float], say: Say) -> list[str]:
    return [
        f'<line class="axis" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{_y(tick, ticks[-1]):.1f}"'
        f' y2="{_y(tick, ticks[-1]):.1f}"/>'
        f'<text class="label" x="{_LEFT - 8}" y="{_y(tick, ticks[-1]) + 4:.1f}" text-anchor="end">'
        f"{escape(say(tick))}</text>"
        for tick in ticks
    ]


def _labels(labels: Sequence[str], x: Sequence[float]) -> list[str]:
    """Some of the labels, the last always, so that they do not touch."""
    every = max(1, math.ceil(len(labels) / _MOST_LABELS))
    shown = range((len(labels) - 1) % every, len(labels), every)
    return [
        f'<text class="label" x="{x[i]:.1f}" y="{HEIGHT - 8}" text-anchor="middle">'
        f"{escape(labels[i])}</text>"
        for i in shown
    ]


def _runs(values: Sequence[float | None]) -> list[list[tuple[int, float]]]:
    """The values that stand beside each other, with their places."""
    runs: list[list[tuple[int, float]]] = [[]]
    for i, value in enumerate(values):
        if value is not None:
            runs[-1].append((i, value))
        elif runs[-1]:
            runs.append([])
    return [run for run in runs if run]
