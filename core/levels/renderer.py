"""From an observation to words, without a model: the manifest's answer, else a generic one.

Everything here is text for people in their language; what an observation holds is put in as plain
text or as a code block, never as markup.
"""

from __future__ import annotations

import datetime as dt
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core.catalog.manifest import Manifest
from core.errors import ErrorInfo
from core.i18n import Texts
from core.levels.template import Field, Optional, Part, fields_of, parse
from core.messages import Block
from core.observation import Observation

MOST_LISTED = 8
# A longer path is shortened where it is only named, not where it is the answer.
MOST_PATH = 60
_KEPT_AT_START, _KEPT_AT_END = 2, 2
MOST_TEXT = 12_000

_MISSING = object()
_BREAKS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
Lookup = Callable[[tuple[str, ...]], Any]


@dataclass(frozen=True, slots=True)
class Renderer:
    """Renders for one person: language, zone and home are theirs."""

    texts: Texts
    lang: str
    tz: str
    home: str

    def observation(self, observation: Observation, manifest: Manifest | None) -> list[Block]:
        """Blocks that answer with this observation. A failed one gives its error in words.

        Items that failed are named after those that worked; with more than eight items the rest
        is counted.
        """
        if observation.error is not None and not observation.ok:
            return [Block("text", self.error(observation.error))]
        blocks = self._by_manifest(observation, manifest) or self._generic(observation)
        if observation.metadata.get("truncated") and len(observation.items() or ()) > 1:
            blocks.append(Block("small", self._part_of(observation)))
        failed = [e for e in observation.entries or () if e.get("ok") is False]
        if failed:
            blocks.append(Block("text", self.failures(failed)))
        return blocks

    def _part_of(self, observation: Observation) -> str:
        """That there is more, and how much where it is known."""
        shown = len(observation.items() or ())
        there = observation.metadata.get("available", observation.metadata.get("total"))
        if isinstance(there, int) and there > shown:
            words = {"used": self.value(shown), "available": self.value(there)}
            return self.texts.say("answer.part_of", self.lang, **words)
        return self.texts.say("answer.only_a_part", self.lang)

    def error(self, error: ErrorInfo) -> str:
        """The error's text in the person's language."""
        params = {
            name: self.short_path(value) if isinstance(value, str) else value
            for name, value in error.params.items()
            if value not in (None, "")
        }
        text = self.texts.say(error.message_key, self.lang, **params)
        # A field the raiser did not fill says nothing to a person.
        return " ".join(text.split()) if "{" not in text else _without_fields(text)

    def path(self, value: str) -> str:
        """A path as people write it: the home as `~`, and on one line whatever it holds, since
        anybody may have named that file."""
        return one_line(self._from_home(value))

    def short_path(self, value: str) -> str:
        """A path in a sentence: of a long one the first folder, the last one and the name."""
        path = self.path(value)
        parts = path.split("/")
        if len(path) <= MOST_PATH or len(parts) <= _KEPT_AT_START + _KEPT_AT_END:
            return path
        return "/".join([*parts[:_KEPT_AT_START], "…", *parts[-_KEPT_AT_END:]])

    def _from_home(self, value: str) -> str:
        if value == self.home or value.startswith(self.home.rstrip("/") + "/"):
            return "~" + value[len(self.home.rstrip("/")) :]
        return value

    # -- by the manifest's own answer -------------------------------------------------------------

    def _by_manifest(self, observation: Observation, manifest: Manifest | None) -> list[Block]:
        if manifest is None or self.lang not in manifest.answer:
            return []
        answer = manifest.answer[self.lang]
        items = observation.items()
        count = 1 if items is None else len(items)
        form = answer.zero if count == 0 else answer.one if count == 1 else answer.many
        if not form:
            return []
        good = observation
        if observation.entries is not None and items is not None:
            good = Observation(
                ok=True,
                entries=tuple(items),
                content=observation.content,
                metadata={**observation.metadata, "count": count},
            )

        def lookup(path: tuple[str, ...]) -> Any:
            try:
                return good.read(path)
            except KeyError:
                return _MISSING

        return self.template(form, lookup)

    def template(self, text: str, lookup: Lookup) -> list[Block]:
        """Render a template; `text` and `code` fields become code blocks of their own."""
        out = _Writer()
        self._parts(parse(text), lookup, out)
        return out.blocks()

    def _parts(self, parts: Sequence[Part], lookup: Lookup, out: _Writer) -> None:
        for part in parts:
            if isinstance(part, str):
                out.write(part)
            elif isinstance(part, Optional):
                fields = fields_of(part.parts)
                if all(_present(lookup(field.path)) for field in fields):
                    self._parts(part.parts, lookup, out)
            else:
                self._field(part, lookup(part.path), out)

    def _field(self, field: Field, value: Any, out: _Writer) -> None:
        if value is _MISSING or value is None:
            return
        if field.filter in {"text", "code"}:
            out.code(str(value))
        elif field.filter == "list":
            out.listed(*self._listed(field.argument, value))
        else:
            out.write(self.value(value, field.filter))

    def _listed(self, template: str, value: Any) -> tuple[str, tuple[str, ...]]:
        """The first items in lines, the others counted; and those others, each as its lines."""
        items = list(value) if isinstance(value, (list, tuple)) else []
        lines = [self._item(template, item) for item in items[:MOST_LISTED]]
        rest = tuple(self._item(template, item) for item in items[MOST_LISTED:])
        if rest:
            lines.append(self.texts.say("answer.more", self.lang, count=len(rest)))
        return "\n".join(lines), rest

    def _item(self, template: str, item: Any) -> str:
        if not template:
            return self._line(item)
        out = _Writer()
        self._parts(parse(template), _entry_lookup(item), out)
        return out.plain()

    def value(self, value: Any, kind: str = "") -> str:
        """One value as the person writes it."""
        say = self.texts
        if isinstance(value, bool):
            return say.say("value.yes" if value else "value.no", self.lang)
        if kind == "bytes" and isinstance(value, (int, float)):
            return say.bytes(value, self.lang)
        if kind == "path":
            return self.path(str(value))
        if kind == "quote":
            return f"«{value}»"
        if kind in {"date", "day", "time", "datetime", "weekday"}:
            moment = _moment(value)
            if moment is None:
                return str(value)
            if kind == "datetime":
                return say.datetime(moment, self.lang, self.tz)
            return str(getattr(say, kind)(moment, self.lang))
        if isinstance(value, (int, float)):
            # A mean has more digits than it says: two decimals, or two figures of a small one.
            if kind == "about" and value:
                value = round(value, max(2, 1 - math.floor(math.log10(abs(value)))))
            return say.number(value, self.lang)
        if isinstance(value, (dict, list, tuple)):
            return json.dumps(value, ensure_ascii=False, default=str)
        return str(value)

    # -- generic ----------------------------------------------------------------------------------

    def _generic(self, observation: Observation) -> list[Block]:
        if observation.entries is None:
            content = observation.content
            if isinstance(content, str):
                return [Block("text", content)] if content else []
            if isinstance(content, Mapping):
                return [Block("text", self._pairs(content))]
            return [] if content is None else [Block("text", self.value(content))]
        items = observation.items() or []
        if not items:
            return [Block("text", self.texts.say("answer.nothing", self.lang))]
        if len(items) == 1 and isinstance(items[0], Mapping):
            return [Block("text", self._pairs(items[0]))]
        by = str(observation.metadata.get("by") or "")
        lines = [f"• {self._line(item, by)}" for item in items]
        more = lines[MOST_LISTED:]
        if more:
            count = self.texts.say("answer.more", self.lang, count=len(more))
            return [Block("text", "\n".join([*lines[:MOST_LISTED], count]), tuple(more))]
        return [Block("text", "\n".join(lines))]

    def _pairs(self, item: Mapping[str, Any]) -> str:
        shown = {k: v for k, v in item.items() if k != "ok" and v not in (None, "", [])}
        return "\n".join(f"{k}: {self._short(v)}" for k, v in shown.items())

    def _line(self, item: Any, by: str = "") -> str:
        """An item in one line: when it is or whose, what it is called, and in brackets the field
        that it was put in order `by`, or the size of a file."""
        if not isinstance(item, Mapping):
            return self._short(item)
        for name in ("path", "title", "name", "summary", "subject", "url", "value"):
            if item.get(name):
                said = one_line(self._short(item[name]))
                first, last = self._when(item), self._detail(item, name, by)
                return f"{first}{said}{last}"
        return ", ".join(self._short(v) for k, v in item.items() if k != "ok")[:200]

    def _when(self, item: Mapping[str, Any]) -> str:
        """What stands before an appointment or a mail, as in the lists of their own programs."""
        if "sender" in item and "date" in item:
            return f"{self._short(item['sender'])}, {self.value(item['date'], 'datetime')}: "
        if item.get("begins"):
            return f"{self.value(item['begins'], 'datetime')}: "
        return f"{self.value(item['day'], 'day')}: " if item.get("day") else ""

    def _detail(self, item: Mapping[str, Any], named: str, by: str) -> str:
        field = by or ("size" if named == "path" else "")
        value = item.get(field)
        if field in {named, "start", "date", "begins", "day", ""} or value in (None, "", []):
            return ""
        moment = isinstance(value, str) and "T" in value and _moment(value) is not None
        kind = "datetime" if moment else "bytes" if field in {"size", "bytes"} else ""
        return f" ({self.value(value, kind) if kind else self._short(value)})"

    def _short(self, value: Any) -> str:
        text = self._from_home(value) if isinstance(value, str) else self.value(value)
        return text if len(text) <= 300 else text[:299] + "…"

    def failures(self, failed: Sequence[Mapping[str, Any]]) -> str:
        """Items that failed, each with its reason; more than eight are counted."""
        lines = [self.texts.say("answer.failed_items", self.lang, count=len(failed))]
        for entry in failed[:MOST_LISTED]:
            name = str(entry.get("path") or entry.get("url") or entry.get("name") or "")
            error = entry.get("error")
            reason = self.error(ErrorInfo.from_json(error)) if isinstance(error, Mapping) else ""
            lines.append(f"• {self.short_path(name)}: {reason}" if name else f"• {reason}")
        return "\n".join(lines)


class _Writer:
    """Collects text, and code blocks between it."""

    def __init__(self) -> None:
        self._blocks: list[Block] = []
        self._text: list[str] = []
        self._rest: tuple[str, ...] = ()

    def write(self, text: str) -> None:
        self._text.append(text)

    def listed(self, text: str, rest: tuple[str, ...]) -> None:
        self._text.append(text)
        self._rest += rest

    def code(self, text: str) -> None:
        self._flush()
        cut = text if len(text) <= MOST_TEXT else text[:MOST_TEXT] + "\n…"
        self._blocks.append(Block("code", cut.strip("\n")))

    def plain(self) -> str:
        self._flush()
        return " ".join(block.text for block in self._blocks)

    def _flush(self) -> None:
        text = "".join(self._text).strip()
        if text:
            self._blocks.append(Block("text", text, self._rest))
        self._text.clear()
        self._rest = ()

    def blocks(self) -> list[Block]:
        self._flush()
        return [block for block in self._blocks if block.text]


def one_line(text: str) -> str:
    """The text with line breaks, other controls and turns of direction spelt out."""
    if text.isprintable():
        return text
    return "".join(ascii(char)[1:-1] if _BREAKS.match(char) else char for char in text)


def _entry_lookup(item: Any) -> Lookup:
    def lookup(path: tuple[str, ...]) -> Any:
        value = item
        for key in path:
            if not isinstance(value, Mapping) or key not in value:
                return value if path == ("value",) and not isinstance(item, Mapping) else _MISSING
            value = value[key]
        return value

    return lookup


def _present(value: Any) -> bool:
    return value is not _MISSING and value is not False and value not in (None, "", [])


def _moment(value: Any) -> dt.datetime | None:
    try:
        moment = dt.datetime.fromisoformat(str(value))
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=dt.UTC)


def _without_fields(text: str) -> str:
    """Drop the piece of a sentence that speaks of an unfilled field."""
    text = re.sub(r"\s*[(«:][^().]*\{[a-z_]+\}[^().»]*[)»]?", "", text)
    return " ".join(re.sub(r"\{[a-z_]+\}", "", text).split())
