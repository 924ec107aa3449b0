"""The figures of a month as the console draws its own: reuse and tokens by day, time by level."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bot.console.charts import Series, Span, bar_chart, line_chart, span_chart, standalone


def draw(figures: Mapping[str, Any], path: Path) -> list[Path]:
    """Write the drawings beside each other: `path`, and with `-tokens` and `-times` behind its
    name. Returns where they are. Raises `OSError`."""
    days = figures["per_day"]
    labels = [str(day["day"] + 1) for day in days]
    rates = [100 * day["reused"] / day["turns"] if day["turns"] else None for day in days]
    spans = [
        Span(name.replace("fastpath:", ""), one["median_ms"], one["p95_ms"])
        for name, one in figures["by_level"].items()
    ]
    drawings = {
        "": line_chart(
            "reuse",
            "Served from memory",
            "Share of each day's requests, in percent",
            labels,
            [Series("reused", tuple(rates))],
            say=lambda value: f"{value:.0f} %",
            top=100,
        ),
        "-tokens": bar_chart(
            "tokens",
            "Tokens",
            "What the model read and wrote each day",
            labels,
            [Series("tokens", tuple(float(day["tokens"]) for day in days))],
            say=lambda value: f"{value:.0f}",
        ),
        "-times": span_chart(
            "times",
            "Time to the answer",
            "Median and 95th of 100, by what planned it",
            spans,
            say=lambda value: f"{value:.0f} ms",
            columns=("level", "median", "95 %"),
        ),
    }
    places = []
    for name, figure in drawings.items():
        place = path.with_name(f"{path.stem}{name}{path.suffix or '.svg'}")
        place.write_text(standalone(figure), encoding="utf-8")
        places.append(place)
    return places
