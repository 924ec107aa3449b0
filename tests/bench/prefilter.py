"""How good and how fast the pre-filter is.

`python -m tests.bench prefilter --catalog FILE --corpus FILE`: recall against a corpus of requests
(JSON lines `{"query", "first_tool"}`) over a catalogue (JSON list with name, description,
affinity), without and with evidence. Without the two files only the times are taken, over
catalogues made here.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from core.catalog.evidence import CAPACITY
from core.catalog.lexicon import load_lexicon
from core.catalog.prefilter import Evidence, Item, PrefilterIndex, choose
from core.vocabulary import OBJECTS, QUALIFIERS, VERBS
from tests.bench.figures import times

SIZES_AND_BUDGETS_MS = {100: 1.0, 300: 2.0, 1000: 5.0}
AT = (1, 5, 8)
_ROUNDS = 20
_ORDERS = 8

# Made up for the clock; the quality is measured on the corpus given.
_REQUESTS = (
    "che ore sono a Lisbona",
    "trova i pdf più recenti nella cartella Fatture e spostali in Archivio",
    "leggi le prime dieci righe di elenco.txt",
    "what is in my downloads folder",
    "summarise https://example.org/notes and send the summary to Ada",
    "cancella i file temporanei più vecchi di un mese, poi dimmi quanto spazio si è liberato",
    "somma gli importi della tabella e ordina per data",
    "rename every picture taken last summer",
    "quando ho la prossima riunione con Bruno",
    "apri la pagina delle previsoini del tempo",
    "ricordami ogni lunedì di annaffiare le piante",
    "please look for the contract we wrote in march, then make a copy of it in the shared folder",
)


def run(argv: Sequence[str]) -> dict[str, Any]:
    """The figures: recalls (when files are given) and milliseconds per request."""
    parser = argparse.ArgumentParser(prog="prefilter")
    parser.add_argument("--catalog", type=Path)
    parser.add_argument("--corpus", type=Path)
    options = parser.parse_args(argv)
    figures: dict[str, Any] = {}
    if options.catalog and options.corpus:
        catalog = read_catalog(options.catalog)
        rows = read_corpus(options.corpus)
        figures |= {"requests": len(rows), "tools": len(catalog)}
        figures |= recalls(PrefilterIndex(catalog), rows)
        learning = recalls(PrefilterIndex(catalog), rows, evidence=Evidence())
        figures |= {f"prequential_{name}": value for name, value in learning.items()}
        figures |= shuffled(PrefilterIndex(catalog), rows)
    figures["ms"] = {
        str(size): {**timing(size), "budget": budget}
        for size, budget in SIZES_AND_BUDGETS_MS.items()
    }
    return figures


def read_catalog(path: Path) -> list[Item]:
    """Items of a catalogue whose descriptions and affinity are in one language or by language."""

    def by_language(value: Any) -> Mapping[str, Any]:
        return value if isinstance(value, dict) else {"it": value or ()}

    return [
        Item(tool["name"], by_language(tool["description"]), by_language(tool.get("affinity")))
        for tool in json.loads(path.read_text("utf-8"))
    ]


def read_corpus(path: Path) -> list[tuple[str, str]]:
    rows = map(json.loads, filter(str.strip, path.read_text("utf-8").splitlines()))
    return [(row["query"], row["first_tool"]) for row in rows]


def recalls(
    index: PrefilterIndex,
    rows: Sequence[tuple[str, str]],
    *,
    evidence: Evidence | None = None,
    learns: bool = True,
) -> dict[str, Any]:
    """Share of requests whose tool is among the first k offered, and the mean over labels of that.

    With evidence every request is ranked before it is learnt, if it `learns`. A label that is not
    in the catalogue counts as missed.
    """
    hits: dict[int, dict[str, list[bool]]] = {k: defaultdict(list) for k in AT}
    offered: list[int] = []
    for query, label in rows:
        names = choose(query, index, evidence=evidence)
        offered.append(len(names))
        for k in AT:
            hits[k][label].append(label in names[:k])
        if evidence is not None and learns:
            evidence.add(query, label)
    figures: dict[str, Any] = {}
    for k in AT:
        every = [hit for those in hits[k].values() for hit in those]
        figures[f"recall_at_{k}"] = round(statistics.fmean(every), 4)
    for k in AT:
        means = [statistics.fmean(those) for those in hits[k].values()]
        figures[f"macro_recall_at_{k}"] = round(statistics.fmean(means), 4)
    figures["tools_offered_mean"] = round(statistics.fmean(offered), 1)
    return figures


def shuffled(index: PrefilterIndex, rows: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """The same with evidence in other orders, and with one half learnt and the other asked: the
    mean and the worst of several, so that the order of the file is not what is measured."""
    found: dict[str, list[float]] = defaultdict(list)
    for seed in range(_ORDERS):
        mixed = random.Random(seed).sample(rows, len(rows))
        half = len(mixed) // 2
        for name, asked, known in (
            ("shuffled", mixed, None),
            ("half", mixed[half:], mixed[:half]),
            ("half", mixed[:half], mixed[half:]),
        ):
            evidence = Evidence(known or ())
            hits = recalls(index, asked, evidence=evidence, learns=known is None)
            for k in (1, 5):
                found[f"{name}_recall_at_{k}"].append(hits[f"recall_at_{k}"])
    return {
        name: {"mean": round(statistics.fmean(those), 4), "worst": min(those)}
        for name, those in found.items()
    }


def timing(size: int) -> dict[str, float]:
    """Milliseconds for one request over a made-up catalogue and as much evidence as is held:
    median, 95th of 100, building, and reading the evidence."""
    catalog = synthetic_catalog(size)
    load_lexicon()
    start = time.perf_counter()
    index = PrefilterIndex(catalog)
    built = time.perf_counter() - start
    past = Evidence()
    rows = [(past.features(query), [tool]) for query, tool in synthetic_past(catalog)]
    past.learn_all(rows)
    start = time.perf_counter()
    Evidence().learn_all(rows)
    read = time.perf_counter() - start
    spent: list[float] = []
    for _ in range(times(_ROUNDS)):
        for request in _REQUESTS:
            start = time.perf_counter()
            choose(request, index, evidence=past)
            spent.append(time.perf_counter() - start)
    return {
        "median": round(statistics.median(spent) * 1000, 3),
        "p95": round(statistics.quantiles(spent, n=20)[-1] * 1000, 3),
        "build": round(built * 1000, 1),
        "read_evidence": round(read * 1000, 1),
    }


def synthetic_catalog(size: int) -> list[Item]:
    """The same `size` tools every time: names of the vocabulary, words of the lexicon."""
    dice = random.Random(size)
    names: dict[str, None] = {}
    verbs, objects, qualifiers = sorted(VERBS), sorted(OBJECTS), sorted(QUALIFIERS)
    while len(names) < size:
        tail = dice.sample(qualifiers, dice.choice((0, 1, 1, 2)))
        names["_".join([dice.choice(verbs), dice.choice(objects), *tail])] = None
    words = sorted(load_lexicon().words())
    return [
        Item(
            name,
            {lang: " ".join(dice.choices(words, k=25)) for lang in ("it", "en")},
            {lang: tuple(dice.sample(words, 6)) for lang in ("it", "en")},
        )
        for name in names
    ]


def synthetic_past(catalog: Sequence[Item]) -> list[tuple[str, str]]:
    """As many requests as evidence holds, of the lexicon's words, and the tool of each."""
    dice = random.Random(len(catalog))
    words = sorted(load_lexicon().words())
    return [
        (" ".join(dice.choices(words, k=dice.randint(3, 12))), dice.choice(catalog).name)
        for _ in range(CAPACITY)
    ]
