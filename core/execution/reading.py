"""What a model reads in a step: a caged program cut the passages, the engine asks, and believes
no more of the answer than its form allows.

What is read is data: fenced in the prompt, in the answer marked by where it came from. Each call
of the model counts in the turn and in the day like any other.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from core.catalog.manifest import Manifest
from core.clock import Clock
from core.errors import CallRefused, ErrorCode, ModelError, ModelReplyInvalid, to_error_info
from core.execution import reading_replies as replies
from core.execution.context import TurnContext
from core.llm.client import ChatModel, ChatReply, ChatRequest, Message, Usage
from core.observation import Observation
from core.turn_state import Cap, TurnState

log = logging.getLogger(__name__)

RIGHT = "llm:local"
KINDS = frozenset({"describe", "classify", "extract"})
# What one call of a model is given to read; about two thousand tokens.
BATCH_CHARS = 8_000
BATCH_ITEMS = 25
# After this no further call begins: what was read by then is told, the rest counted.
TIME_BUDGET_S = 240.0
_FENCE = re.compile(r"<<<|>>>")

Progress = Callable[[int | None, int | None], None]


class Templates(Protocol):
    def render(self, role: str, lang: str, **variables: Any) -> str: ...


@dataclass(frozen=True, slots=True)
class Reading:
    """What came of it, and what the model's calls cost."""

    observation: Observation
    usage: Usage = field(default_factory=Usage)
    model_ms: int = 0


def kind_of(manifest: Manifest) -> str | None:
    """How a model is to read what this program prepares; None for a program without it."""
    hints = {h for right in manifest.capabilities if right.name == RIGHT for h in right.hints}
    return next(iter(sorted(hints & KINDS)), None)


@dataclass(frozen=True, slots=True)
class Reader:
    """`model` gives the model that reads, and raises `ModelError` when there is none."""

    model: Callable[[], ChatModel]
    prompts: Templates
    clock: Clock

    async def read(
        self,
        kind: str,
        context: TurnContext,
        state: TurnState,
        args: Mapping[str, Any],
        prepared: Observation,
        on_progress: Progress | None = None,
    ) -> Reading:
        """The observation of a step whose program has `prepared` passages of `args["entries"]`.

        `describe`: `content.summary`. `classify`: the entries with `category`, by classes.
        `extract`: one entry per record found, with its `source`. Nothing to read asks nobody.
        Fails with the model's own error, with `quota_day` when the day leaves no call; what was
        read before is then lost. Called twice it asks twice.
        """
        if not prepared.ok or not prepared.entries:
            return Reading(prepared)
        work = _Work(self, kind, context, state, args, prepared, on_progress)
        try:
            observation = await work.done()
        except (ModelError, CallRefused) as exc:
            log.warning("reading failed", extra={"kind": kind, "why": exc.detail})
            observation = Observation.failed(to_error_info(exc))
        observation = replace(observation, provenance=prepared.provenance)
        return Reading(observation, work.usage, round(work.model_ms))


class _Work:
    """One reading; lives for one call of `Reader.read`."""

    def __init__(
        self,
        reader: Reader,
        kind: str,
        context: TurnContext,
        state: TurnState,
        args: Mapping[str, Any],
        prepared: Observation,
        on_progress: Progress | None,
    ) -> None:
        self._reader, self._kind, self._context = reader, kind, context
        self._state, self._args, self._on_progress = state, args, on_progress
        self._passages = list(prepared.entries or ())
        self._facts = dict(prepared.metadata)
        self._until = reader.clock.monotonic() + TIME_BUDGET_S
        self.usage, self.model_ms = Usage(), 0.0

    async def done(self) -> Observation:
        batches = _batches(self._passages)
        match self._kind:
            case "describe":
                return await self._described(batches)
            case "classify":
                return await self._classified(batches)
        return await self._extracted(batches)

    # -- the three kinds --------------------------------------------------------------------------

    async def _described(self, batches: Sequence[list[Mapping[str, Any]]]) -> Observation:
        parts: list[str] = []
        for number, batch in enumerate(batches):
            if number and self._is_late():
                break
            texts = [_text(passage) for passage in batch]
            parts.append(await self._prose("read_describe", texts))
            self._told(number + 1, len(batches))
        seen = self._read_of(batches[: len(parts)])
        while len(parts) > 1:
            joined = _batches([{"text": part} for part in parts])
            if len(joined) == len(parts):  # nothing is won by asking once more
                break
            parts = [
                await self._prose("read_join", [_text(part) for part in group]) for group in joined
            ]
        return Observation(ok=True, content={"summary": "\n\n".join(parts)}, metadata=seen)

    async def _classified(self, batches: Sequence[list[Mapping[str, Any]]]) -> Observation:
        labels = [str(label) for label in self._facts.pop("labels", ())]
        dimension = str(self._args.get("dimension", ""))[:80]
        if not labels:
            found = await self._listed(
                "read_labels",
                [_text(passage)[:300] for passage in self._passages[:BATCH_ITEMS]],
                replies.labels_schema(),
                "labels",
                dimension=dimension,
            )
            labels = replies.labels_in(found)
            if len(labels) < 2:
                raise ModelReplyInvalid("no classes")
        given: list[str] = []
        for number, batch in enumerate(batches):
            if number and self._is_late():
                break
            given += await self._classes(batch, labels, dimension)
            self._told(number + 1, len(batches))
        items = [self._item(passage) for passage in self._passages[: len(given)]]
        sorted_ = [
            {**item, "category": label, "label": passage.get("label") or "—", "ok": True}
            for item, label, passage in zip(items, given, self._passages, strict=False)
        ]
        order = {label: place for place, label in enumerate(labels)}
        sorted_.sort(key=lambda entry: order.get(entry["category"], len(order)))
        for entry in sorted_:
            entry["category"] = entry["category"] or "—"
        counts = {label: given.count(label) for label in labels if label in given}
        if "" in given:
            counts["—"] = given.count("")
        seen = self._read_of(batches, items=len(given))
        seen["counts"] = ", ".join(f"{label}: {count}" for label, count in counts.items()) or "—"
        seen |= {"labels": labels, "count": len(sorted_), "unclassified": given.count("")}
        return Observation(ok=True, entries=tuple(sorted_), metadata=seen)

    async def _classes(
        self, batch: Sequence[Mapping[str, Any]], labels: Sequence[str], dimension: str
    ) -> list[str]:
        for _ in range(2):
            found = await self._listed(
                "read_classify",
                [_text(passage) for passage in batch],
                replies.classes_schema(len(batch), labels),
                "classes",
                dimension=dimension,
                labels=labels,
            )
            classes = replies.classes_in(found, len(batch), labels)
            if classes is not None:
                return classes
        raise ModelReplyInvalid("not one class for each item")

    async def _extracted(self, batches: Sequence[list[Mapping[str, Any]]]) -> Observation:
        fields = [str(name) for name in self._facts.pop("fields", ())]
        entries: list[dict[str, Any]] = []
        dropped = read = 0
        for number, batch in enumerate(batches):
            if number and self._is_late():
                break
            texts = [_text(passage) for passage in batch]
            found = await self._listed(
                "read_extract",
                texts,
                replies.records_schema(len(batch), len(fields)),
                "found",
                fields=fields,
            )
            records, lost = replies.records_in(found, texts, fields)
            dropped += lost
            for index, values in records:
                line = ", ".join(f"{name}: {value}" for name, value in values.items())
                record = {"source": batch[index].get("label", ""), **values}
                entries.append({**record, "line": line, "ok": True})
            read = number + 1
            self._told(read, len(batches))
        seen = self._read_of(batches[:read])
        seen |= {"count": len(entries), "dropped": dropped}
        if dropped:  # an answer speaks of them only when there are some
            seen["not_there"] = dropped
        return Observation(ok=True, entries=tuple(entries), metadata=seen)

    # -- asking -----------------------------------------------------------------------------------

    async def _prose(self, prompt: str, texts: Sequence[str]) -> str:
        for _ in range(2):
            reply = await self._ask(prompt, texts, None)
            if reply.text.strip():
                return reply.text.strip()
        raise ModelReplyInvalid("empty reply, twice")

    async def _listed(
        self, prompt: str, texts: Sequence[str], schema: Mapping[str, Any], name: str, **more: Any
    ) -> list[Any]:
        """The list of a reply under a schema; asked once more when it is none."""
        for _ in range(2):
            found = replies.list_of(await self._ask(prompt, texts, schema, **more), name)
            if found is not None:
                return found
        raise ModelReplyInvalid("no JSON of the form asked for, twice")

    async def _ask(
        self, prompt: str, texts: Sequence[str], schema: Mapping[str, Any] | None, **more: Any
    ) -> ChatReply:
        self._check_day()
        context = self._context
        system = self._reader.prompts.render(
            prompt, context.lang, **{"dimension": "", "labels": (), "fields": (), **more}
        )
        data = self._reader.prompts.render(
            "read_passages", context.lang, request=context.request[:2000], passages=texts
        )
        request = ChatRequest(
            (Message("system", system), Message("user", data)), schema=schema, temperature=0.0
        )
        reply = await self._reader.model().complete(request)
        self.usage += reply.usage
        self.model_ms += reply.latency_ms
        return reply

    def _check_day(self) -> None:
        """Raises `CallRefused(quota_day)` when what may be used in a day is used."""
        told = self._state.told_steps
        spent = sum(
            (Usage(r.tokens_in, r.tokens_out, r.cached) for r in self._state.steps[told:]), Usage()
        )
        extended = Cap.DAY in self._state.extended
        if self._context.allowance.is_spent(spent + self.usage, extended=extended):
            raise CallRefused(ErrorCode.QUOTA_DAY, "the day's tokens are used", cap=Cap.DAY.value)

    # -- small things -----------------------------------------------------------------------------

    def _item(self, passage: Mapping[str, Any]) -> dict[str, Any]:
        """The entry that a passage was cut of."""
        entries, number = self._args.get("entries"), passage.get("item")
        if isinstance(entries, list) and isinstance(number, int) and 0 <= number < len(entries):
            item = entries[number]
            return dict(item) if isinstance(item, Mapping) else {"value": item}
        raise CallRefused(ErrorCode.BAD_OUTPUT, "a passage of no entry")

    def _is_late(self) -> bool:
        return self._reader.clock.monotonic() > self._until

    def _told(self, done: int, total: int) -> None:
        if self._on_progress is not None and total > 1:
            self._on_progress(done, total)

    def _read_of(
        self, batches: Sequence[list[Mapping[str, Any]]], *, items: int | None = None
    ) -> dict[str, Any]:
        """How much was read: `used` of `available` entries; `part_of` and `first_chars` are there
        only when it was not all."""
        read = [passage for batch in batches for passage in batch][:items]
        used = len({passage.get("item") for passage in read})
        available = int(self._facts.get("available") or used)
        short = len(read) < len(self._passages) or self._facts.get("truncated") is True
        seen: dict[str, Any] = {"used": used, "available": available, "truncated": short}
        if used < available:
            seen["part_of"] = available
        elif short:
            seen["first_chars"] = sum(len(str(passage.get("text", ""))) for passage in read)
        return seen


def _text(passage: Mapping[str, Any] | str) -> str:
    """The text of a passage, in which nothing looks like the fence around it."""
    text = passage if isinstance(passage, str) else str(passage.get("text", ""))
    return _FENCE.sub("…", text)


def _batches(passages: Sequence[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
    """Passages in their order, as many in one call as it may read."""
    batches: list[list[Mapping[str, Any]]] = []
    room = 0
    for passage in passages:
        size = len(str(passage.get("text", "")))
        if not batches or size > room or len(batches[-1]) >= BATCH_ITEMS:
            batches.append([])
            room = BATCH_CHARS
        batches[-1].append(passage)
        room -= size
    return batches
