"""Says which address lies at coordinates, and where an address is."""

from __future__ import annotations

from executors._sdk import geo, place_words, result
from executors._sdk.place_chain import PlaceChain
from executors._sdk.result import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from executors._sdk.call import Call

# Of an address that means several places: as many as can be told apart at a glance.
MOST_MATCHES = 3


def run(call: Call) -> dict[str, Any]:
    """One entry per point, in order: the address nearest to it, and how far away that is. Then
    those of the addresses: where each is, with `found_at`; up to three when several bear its name.

    A point where nothing is known is a failed entry, as are what are no coordinates and an address
    that does not exist. Metadata: `unanswered` who did not answer while another did.
    """
    points = [str(text) for text in call.args.get("coords") or ()]
    addresses = [str(text) for text in call.args.get("addresses") or ()]
    entries: list[dict[str, Any]] = []
    world = geo.Geography(call) if points else None
    chain = PlaceChain(call) if addresses else None
    for number, text in enumerate(points, start=1):
        if world is not None:
            entries.append(_looked_up(call, world, text))
        call.progress(number, len(points) + len(addresses))
    for number, text in enumerate(addresses, start=len(points) + 1):
        if chain is not None:
            entries += _found(call, chain, text)
        call.progress(number, len(points) + len(addresses))
    unanswered = chain.unanswered if chain is not None else ""
    return result.done(entries, **({"unanswered": unanswered} if unanswered else {}))


def _looked_up(call: Call, world: geo.Geography, text: str) -> dict[str, Any]:
    try:
        spot = geo.parse_spot(text)
        if spot is None:
            raise Failure("invalid_args", f"no coordinates: {text[:60]!r}; write them as lat, lon")
        place = world.at(spot)
        if place is None:
            raise Failure("unknown_place", "nothing is known there", place=text[:80])
    except Failure as failure:
        return _failed(text, failure)
    shown = place_words.fields(place, lang=call.lang, origin=spot)
    return result.item(**shown, label=place.label, asked=spot.text, map_asked=spot.map)


def _found(call: Call, chain: PlaceChain, text: str) -> list[dict[str, Any]]:
    try:
        places = chain.geocode(text, most=geo.MOST_MATCHES)
        if not places:
            raise Failure("unknown_place", "no such place: name a town too", place=text[:80])
        meant = [one for one in places if one.name.casefold() == places[0].name.casefold()]
    except Failure as failure:
        return [_failed(text, failure)]
    return [
        result.item(
            **place_words.fields(place, lang=call.lang),
            label=place.label,
            asked=" ".join(text.split())[:80],
            map_asked=place.spot.map,
            found_at=place.spot.text,
        )
        for place in meant[:MOST_MATCHES]
    ]


def _failed(text: str, failure: Failure) -> dict[str, Any]:
    error = result.failure(failure.code, failure.detail, **failure.params)["error"]
    return {"ok": False, "name": text[:80], "error": error}
