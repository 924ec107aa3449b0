"""The charts of the last thirty days: reuse, time to answer, tokens."""

from __future__ import annotations

import datetime as dt
import math
import statistics
from collections.abc import Mapping, Sequence

from bot.console.charts import Figure, Series, Span, bar_chart, line_chart, span_chart
from bot.console.rendering import Words
from core.store import turn_pages, usage
from core.store.database import Transaction
from core.store.usage import DayUsage

DAYS = 30
LEVELS = ("fastpath", "autopath", "engine")


async def figures_of(tx: Transaction, words: Words, today: dt.date) -> list[Figure]:
    """The three charts, of everybody together, up to today."""
    first = today - dt.timedelta(days=DAYS - 1)
    days = await usage.of_days(tx, first)
    since = words.clock.now() - dt.timedelta(days=DAYS)
    took = {level: await turn_pages.durations(tx, level, since=since) for level in LEVELS}
    span = [first + dt.timedelta(days=number) for number in range(DAYS)]
    used = [days.get(day, DayUsage()) for day in span]
    labels = [words.texts.short_day(day, words.lang) for day in span]
    return [reuse(words, labels, used), latency(words, took), tokens(words, labels, used)]


def reuse(words: Words, labels: Sequence[str], used: Sequence[DayUsage]) -> Figure:
    """How many of a day's requests memory answered; a day without requests is a gap."""
    turns, remembered = sum(d.turns for d in used), sum(d.from_memory for d in used)
    shares = tuple(100 * d.from_memory / d.turns if d.turns else None for d in used)
    return line_chart(
        "reuse",
        words.t("console.chart.reuse"),
        words.t(
            "console.chart.reuse.about",
            percent=words.percent(remembered / turns if turns else 0.0),
        ),
        labels,
        [Series(words.t("console.chart.reuse.share"), shares)],
        say=lambda value: words.percent(value / 100),
        top=100,
        corner=words.t("console.chart.day"),
    )


def tokens(words: Words, labels: Sequence[str], used: Sequence[DayUsage]) -> Figure:
    """What the model read and wrote in a day."""
    total = sum(d.tokens_in + d.tokens_out for d in used)
    return bar_chart(
        "tokens",
        words.t("console.chart.tokens"),
        words.t("console.chart.tokens.about", total=total),
        labels,
        [
            Series(words.t("console.chart.tokens.read"), tuple(float(d.tokens_in) for d in used)),
            Series(
                words.t("console.chart.tokens.written"), tuple(float(d.tokens_out) for d in used)
            ),
        ],
        say=words.number,
        corner=words.t("console.chart.day"),
    )


def latency(words: Words, took: Mapping[str, Sequence[float]]) -> Figure:
    """How long the last requests took, in seconds, by where their plan was found."""
    return span_chart(
        "latency",
        words.t("console.chart.latency"),
        words.t("console.chart.latency.about"),
        [
            Span(words.t(f"console.source.{level}"), *_median_and_p95(seconds))
            for level, seconds in took.items()
        ],
        say=words.span,
        columns=(
            words.t("console.chart.level"),
            words.t("console.chart.median"),
            words.t("console.chart.p95"),
        ),
        note=words.t("console.chart.latency.how"),
    )


def _median_and_p95(seconds: Sequence[float]) -> tuple[float | None, float | None]:
    if not seconds:
        return None, None
    # What is too short for the clock still has a place on a scale of powers of ten.
    in_order = sorted(max(one, 0.001) for one in seconds)
    return statistics.median(in_order), in_order[math.ceil(len(in_order) * 0.95) - 1]
