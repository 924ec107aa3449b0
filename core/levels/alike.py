"""Of tools that do nearly the same, those that a request means: for models that choose badly.

Pure. Goes by the endings of the files that are named, by what the tools' own words say, and by the
pre-filter's points; where nothing tells, all stay.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from core.catalog.manifest import Manifest
from core.levels.spans import Spans
from core.vocabulary import object_of, verb_of

# What files with these endings are read and made by: the qualifier of a tool's name.
_BY_ENDING: Mapping[str, str] = {
    "pdf": "pdf",
    **dict.fromkeys("docx odt rtf doc".split(), "doc"),
    **dict.fromkeys("xlsx xls xlsm ods".split(), "spreadsheet"),
}
# Read as a text as well as a table.
_BOTH = frozenset({"csv", "tsv"})
_KINDS = frozenset(_BY_ENDING.values())
# Tools beside a plainer one, and the words of which one must be said for them to be meant.
_PLAINER: Mapping[str, tuple[str, frozenset[str]]] = {
    "filter_texts_lines": ("filter_entries", frozenset("regex grep espressione regular".split())),
    "describe_numbers": (
        "compute_entries",
        frozenset(
            """statistiche statistica statistics statistical quartili quartiles deviazione
            deviation distribuzione distribution""".split()
        ),
    ),
    "get_files": (
        "find_files",
        frozenset(
            """exif metadati metadata proprieta properties scattata scattate scattato scattati
            taken fotocamera camera dettagli details""".split()
        ),
    ),
}
_MAKING = frozenset({"write", "create"})
# Deeds whose words are near: making and writing, packing and unpacking.
_GROUPS = {**dict.fromkeys(_MAKING, "make"), "compress": "pack", "extract": "pack"}
# Of tools with one deed, the share of the best one's points that another needs.
_AS_GOOD = 0.7
# Of a tool with a qualifier, the share of the plain one's.
_ECHO = 0.8
# A tool with a qualifier puts the plain one out with so many times its points.
_CLEARLY = 1.3


@dataclass(frozen=True, slots=True)
class Said:
    """What tells tools alike apart. `deeds`: verbs that were plainly said. `named`: whether a
    tool's own words were said; `sought`: whether something is to be looked for. `writes_to`:
    whether an address of mail was said; `objects`: the things that were plainly spoken of."""

    spans: Spans
    words: frozenset[str]
    relevance: Mapping[str, float]
    deeds: frozenset[str]
    named: Callable[[Manifest], bool]
    sought: bool
    writes_to: bool = False
    objects: frozenset[str] = frozenset()

    @property
    def endings(self) -> frozenset[str]:
        """The endings of the files that are named one by one."""
        files = [path.text for path in self.spans.paths if path.grade == "said" and path.is_file]
        return frozenset(name.rpartition(".")[2].lower() for name in files)


def meant(asked_for: Collection[str], manifests: Mapping[str, Manifest], said: Said) -> set[str]:
    """Of the changing tools that a request's verbs allow, those that its things allow, too."""
    # "Changed this week" speaks of a change and wishes none.
    kept = {
        name
        for name in asked_for
        if _fits(name, said) and (verb_of(name) != "change" or said.named(manifests[name]))
    }
    groups: dict[str, set[str]] = {}
    for name in kept:
        verb = verb_of(name)
        groups.setdefault(_GROUPS.get(verb, verb), set()).add(name)
    chosen: set[str] = set()
    for group, alike in groups.items():
        if group == "pack" and "extract" in said.deeds:
            # The name of an archive speaks of packing, whatever is done with it.
            alike = {name for name in alike if verb_of(name) == "extract"} or alike
        most = max(said.relevance.get(name, 0.0) for name in alike)
        chosen |= {
            n
            for n in alike
            if said.relevance.get(n, 0.0) >= _AS_GOOD * most
            or (object_of(n) == "messages" and "messages" in said.objects)
        }
    if any(verb_of(name) == "change" for name in chosen):
        # What is converted is not made besides: its new ending names no other wish.
        chosen = {name for name in chosen if verb_of(name) not in _MAKING}
    return chosen


def without_echoes(tools: Mapping[str, Manifest], said: Said) -> dict[str, Manifest]:
    """The tools without those that come along only because a plainer one was spoken of."""
    return {
        name: manifest
        for name, manifest in tools.items()
        if manifest.is_mutating or (_fits(name, said) and not _echoes(name, tools, said))
    }


def _fits(name: str, said: Said) -> bool:
    """Whether a tool is for the files that are named, or for folders where folders are meant."""
    own = next((part for part in name.split("_")[2:] if part in _KINDS), None)
    endings = said.endings
    if verb_of(name) == "send":
        # `write hello into note.txt` goes to a file, whomever writing may be to.
        to_file = any(p.role == "target" and p.is_file for p in said.spans.paths)
        return said.writes_to or not to_file
    if object_of(name) == "dirs" and verb_of(name) in {"find", "delete"}:
        return not (endings or said.spans.patterns)
    if name == "create_dirs" and endings:
        return any(path.grade == "named" for path in said.spans.paths)
    if object_of(name) != "files" or verb_of(name) not in {"read", *_MAKING} or not endings:
        return True
    wanted = {_BY_ENDING.get(ending) for ending in endings}
    if endings & _BOTH:
        by_lines = any(amount.unit == "lines" for amount in said.spans.amounts)
        return own is None or (own == "spreadsheet" and not by_lines)
    return own in wanted


def _outdoes(other: str, plain: str, tools: Mapping[str, Manifest], said: Said) -> bool:
    """Whether the words mean the more special of two tools so clearly that the other is out."""
    points = said.relevance.get
    return (
        other.startswith(plain + "_")
        and not tools[other].is_mutating
        and points(other, 0.0) >= _CLEARLY * points(plain, 0.0)
        and said.named(tools[other])
    )


def _echoes(name: str, tools: Mapping[str, Manifest], said: Said) -> bool:
    if name in _PLAINER:
        plainer, words = _PLAINER[name]
        return plainer in tools and words.isdisjoint(said.words)
    if object_of(name) == "dirs" and verb_of(name) == "find":
        better = said.relevance.get(name, 0.0) > said.relevance.get("find_files", 0.0)
        return "find_files" in tools and not said.sought and not better
    parts = name.split("_")
    base = "_".join(parts[:2])
    if len(parts) == 2:
        return any(_outdoes(other, name, tools, said) for other in tools)
    if base not in tools or said.endings:
        return False
    return said.relevance.get(name, 0.0) < _ECHO * said.relevance.get(base, 0.0)
