"""Says which address lies at coordinates."""

from __future__ import annotations

from executors._sdk import geo, place_words, result
from executors._sdk.result import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from executors._sdk.call import Call


def run(call: Call) -> dict[str, Any]:
    """One entry per point, in order: the address nearest to it, and how far away that is.

    A point where nothing is known is a failed entry, as is what are no coordinates.
    """
    points = [str(text) for text in call.args["coords"]]
    entries: list[dict[str, Any]] = []
    world = geo.Geography(call) if points else None
    for number, text in enumerate(points, start=1):
        if world is not None:
            entries.append(_looked_up(call, world, text))
        call.progress(number, len(points))
    return result.done(entries)


def _looked_up(call: Call, world: geo.Geography, text: str) -> dict[str, Any]:
    try:
        spot = geo.parse_spot(text)
        if spot is None:
            raise Failure("invalid_args", f"no coordinates: {text[:60]!r}; write them as lat, lon")
        place = world.at(spot)
        if place is None:
            raise Failure("unknown_place", "nothing is known there", place=text[:80])
    except Failure as failure:
        error = result.failure(failure.code, failure.detail, **failure.params)["error"]
        return {"ok": False, "name": text[:80], "error": error}
    shown = place_words.fields(place, lang=call.lang, origin=spot)
    return result.item(**shown, label=place.label, asked=spot.text, map_asked=spot.map)
