"""Which files and folders of a request may stand in an argument of one step. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core.catalog.manifest import Manifest
from core.levels.deeds import DESTRUCTIVE
from core.levels.spans import PathSpan
from core.levels.wish import Wish
from core.vocabulary import object_of, verb_of

Schema = dict[str, Any]
Offer = tuple[Schema | None, bool]
"""The schema of an argument, None when nothing fits; and whether it must be given."""


@dataclass(frozen=True, slots=True)
class PathChoices:
    """Paths for one tool at one place of the plan (1 is the first)."""

    wish: Wish
    manifest: Manifest
    number: int

    def offer(self, name: str, spec: Mapping[str, Any]) -> Offer:
        """What the argument `name` may be: see `Arguments.offer`."""
        many = spec.get("type") == "array"
        if verb_of(self.manifest.name) == "send":
            return self._attached(spec), False
        found = self._path_candidates(name, many=many)
        folders = [path for path in self.wish.spans.paths if not path.is_file]
        if verb_of(self.manifest.name) == "create" and object_of(self.manifest.name) == "dirs":
            return listed(self._new_folders(), spec), False
        if name.startswith("other_"):
            # Several folders to be set side by side: the first is the other argument's.
            others = [path.text for path in folders[1:]]
            return listed(others, spec, most=None), bool(others)
        if "other_paths" in self.manifest.properties and len(folders) > 1:
            found = folders[:1]
        texts = [path.text for path in found]
        # What is changed is looked for only where the person said.
        sure = bool(self.wish.acting) or all(path.grade != "hinted" for path in found)
        forced = bool(found) and not many and sure
        if many and len(found) > 1:
            return {"anyOf": [{"const": texts}, *({"const": [t]} for t in texts[:6])]}, False
        return listed(texts, spec), forced

    def _attached(self, spec: Mapping[str, Any]) -> Schema | None:
        """Files that go with a mail: those that were named to be sent, or what a step made."""
        made = references(self.number, "path")
        goal = self.wish.destination
        said = [p.text for p in self.wish.spans.paths if p.grade == "said" and p.is_file]
        return listed([*made, *(t for t in said if goal is None or t != goal.text)], spec, most=1)

    def _new_folders(self) -> list[str]:
        """Folders to be made, in the one that was named for them."""
        folders = [p for p in self.wish.spans.paths if not p.is_file and p.text != "."]
        sure = [p for p in folders if p.grade != "hinted"]
        inside = next((p for p in folders if p.role == "target" and p not in sure[:1]), None)
        made = [p for p in sure or folders if p is not inside] or folders
        if inside is None or inside in made or any("/" in path.text for path in made):
            return [path.text for path in made]
        return [f"{inside.text.rstrip('/')}/{path.text}" for path in made]

    def _path_candidates(self, name: str, *, many: bool) -> list[PathSpan]:
        wish, verb = self.wish, verb_of(self.manifest.name)
        paths, goal = list(wish.spans.paths), wish.destination
        said = [p for p in paths if p.grade == "said"]
        acts_towards = self.manifest.name in wish.acting and verb not in DESTRUCTIVE
        if acts_towards and not many:
            if goal is not None:
                return [goal]
            return said[-1:] if len(said) > 1 and verb != "write" else said
        if goal is not None:
            paths, said = [[p for p in those if p != goal] for those in (paths, said)]
        if not many:
            # A folder to look into.
            folders = [p for p in paths if not p.is_file]
            sure = [p for p in folders if p.grade != "hinted"]
            return sure or folders
        if verb in DESTRUCTIVE:
            # Not where it stands (`a.txt from /srv/x`), nor with what a search is narrowed by.
            narrowed = wish.spans.patterns or any(a.unit for a in wish.spans.amounts)
            if object_of(self.manifest.name) == "dirs":
                return [p for p in paths if p.grade != "hinted" and not p.is_file]
            return [p for p in said if p.role == "" and (p.is_file or not narrowed)]
        if self.manifest.is_mutating and wish.spans.patterns and verb != "compress":
            return [p for p in said if p.is_file]
        if acts_towards:
            return said[:-1] if goal is None and len(said) > 1 else said or _named(paths)
        return [p for p in said if p.is_file] or (said if not wish.spans.patterns else [])


def _named(paths: Sequence[PathSpan]) -> list[PathSpan]:
    return [path for path in paths if path.grade == "named"]


def listed(
    values: Sequence[Any], spec: Mapping[str, Any], *, most: int | None = None
) -> Schema | None:
    """A schema: one of the values, or where a list is wanted all or one of them."""
    if not values:
        return None
    if spec.get("type") != "array":
        return {"enum": list(values)}
    singles: list[Schema] = [{"const": [value]} for value in values[:8]]
    if most == 1 or len(values) == 1:
        return {"anyOf": singles} if len(singles) > 1 else singles[0]
    return {"anyOf": [{"const": list(values)}, *singles]}


def references(number: int, field: str) -> list[str]:
    """References to a field of each step before the step with this number."""
    return [f"{{{{step{earlier}.{field}}}}}" for earlier in range(1, number)]
