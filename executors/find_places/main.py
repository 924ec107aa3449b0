"""Looks for places: by kind or by words, around a place that is named or all over the world."""

from __future__ import annotations

from executors._sdk import geo, place_words, result
from executors._sdk.result import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from executors._sdk.call import Call

# How far to look when nobody says it: around the corner, then what a car reaches.
USUAL_RADII_KM = (3.0, 30.0)
MOST_RESULTS = 8


def run(call: Call) -> dict[str, Any]:
    """One entry per place, those of each query by distance (without `near`: by relevance).

    Metadata: `near` as it was understood, `nothing_for` the queries without a match. Finding
    nothing is no failure; a query that nobody answered is a failed entry. `near` that does not
    exist, or stands for where the person is, fails with `unknown_place`.
    """
    queries = [str(query) for query in call.args["queries"]]
    near = str(call.args.get("near") or "").strip()
    if not near and len(queries) == 1:
        queries[0], said = place_words.split_near(queries[0])
        near = said or ""
    if not queries:
        return result.done([])
    search = _Search(call, near)
    entries: list[dict[str, Any]] = []
    nothing_for: list[str] = []
    for number, query in enumerate(queries, start=1):
        try:
            found = search.places(query)
        except Failure as failure:
            entries.append(_failed(query, failure))
        else:
            if not found:
                nothing_for.append(query)
            entries += [_entry(call, search, query, place) for place in found]
        call.progress(number, len(queries))
    more = {"nothing_for": nothing_for} if nothing_for else {}
    return result.done(entries, **search.metadata, **more)


class _Search:
    """Where to look, found once for all queries."""

    def __init__(self, call: Call, near: str) -> None:
        self._world = geo.Geography(call)
        self._most = MOST_RESULTS
        radius = float(call.args.get("radius_km") or 0)
        self._radii = (radius,) if radius else USUAL_RADII_KM
        self.metadata: dict[str, Any] = {}
        self.origin: geo.Spot | None = None
        if near:
            centre = self._centre(near)
            self.origin = centre.spot
            self.metadata = {"near": centre.label, "near_coords": centre.spot.text}

    def _centre(self, near: str) -> geo.Place:
        if place_words.is_here(near):
            detail = "where the person is is not known: ask for a town or an address"
            raise Failure("unknown_place", detail, place=near[:80])
        spot = geo.parse_spot(near)
        if spot is not None:
            return geo.Place(spot.text, "", spot)
        found = self._world.geocode(near, most=1)
        if not found:
            raise Failure("unknown_place", "no such place: name a town too", place=near[:80])
        return found[0]

    def places(self, query: str) -> list[geo.Place]:
        """Those within the first radius that has any."""
        if self.origin is None:
            return self._world.find(query, most=self._most)
        tag = place_words.tag_of(query)
        for radius in self._radii:
            found: list[geo.Place] = []
            if tag is not None:
                found = self._world.around([tag], self.origin, radius_km=radius, most=self._most)
            found = found or self._world.find(
                query, near=self.origin, radius_km=radius, most=self._most
            )
            if found:
                return found
        return []


def _entry(call: Call, search: _Search, query: str, place: geo.Place) -> dict[str, Any]:
    shown = place_words.fields(place, lang=call.lang, origin=search.origin)
    return result.item(query=query, **shown)


def _failed(query: str, failure: Failure) -> dict[str, Any]:
    error = result.failure(failure.code, failure.detail, **failure.params)["error"]
    return {"ok": False, "query": query, "name": query, "error": error}
