"""What the fake Bot API served, read by another client than the bot's: aiogram, whose types know
every field of the Bot API. A fake that invents or forgets one does not pass.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from aiogram import methods
from aiogram.methods.base import TelegramMethod
from aiogram.types import Update
from pydantic import BaseModel, TypeAdapter, ValidationError


def problems(
    calls: Sequence[Mapping[str, Any]], made_up: Collection[int] = frozenset()
) -> list[str]:
    """What is wrong with the answers of these calls, as the fake noted them; nothing when they
    could have been Telegram's. `made_up`: the updates that a test wrote by itself."""
    found = []
    for call in calls:
        if "result" in call and not call.get("unsupported"):
            method, result = call["method"], call["result"]
            if method == "getUpdates":
                result = [update for update in result if update["update_id"] not in made_up]
            found += [f"{method}: {what}" for what in _wrong(method, result)]
    return sorted(set(found))


def kinds(calls: Sequence[Mapping[str, Any]]) -> set[str]:
    """The methods that were answered, the kinds of updates that were given out, and what stood in
    their messages."""
    found = set()
    for call in calls:
        if "result" not in call:
            continue
        found.add(call["method"])
        if call["method"] == "getUpdates":
            for update in call["result"]:
                kind = next(key for key in update if key != "update_id")
                found.add(kind)
                if isinstance(update[kind], dict):
                    found |= {f"{kind}.{key}" for key in update[kind]}
    return found


def _wrong(method: str, result: Any) -> list[str]:
    try:
        read = _returning(method.lower()).validate_python(result)
    except ValidationError as exc:
        return [f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in exc.errors()]
    return [f"{path} is no field" for path in _unknown(read, "")]


@cache
def _returning(method: str) -> TypeAdapter[Any]:
    if method == "getupdates":
        return TypeAdapter(list[Update])
    known: dict[str, Any] = {
        name.lower(): one
        for name, one in vars(methods).items()
        if isinstance(one, type) and issubclass(one, TelegramMethod)
    }
    return TypeAdapter(known[method].__returning__)


def _unknown(value: Any, path: str) -> Iterator[str]:
    """The fields that no type of aiogram's has, however deep."""
    if isinstance(value, BaseModel):
        for name in value.model_extra or {}:
            yield f"{path}{type(value).__name__}.{name}"
        for name in type(value).model_fields:
            yield from _unknown(getattr(value, name), f"{path}{name}.")
    elif isinstance(value, list):
        for one in value:
            yield from _unknown(one, path)
