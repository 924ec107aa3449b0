"""Looks for places: by kind or by words, around a place that is named, around the person, or all
over the world."""

from __future__ import annotations

from executors._sdk import geo, place_words, result
from executors._sdk.place_chain import PlaceChain
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

    Metadata: `near` as it was understood, `nothing_for` the queries without a match, `unanswered`
    who of those that are asked did not answer while another did. Finding nothing is no failure; a
    query that nobody answered is a failed entry. `near` that does not
    exist fails with `unknown_place`; a search around the person whose place is not known, before
    anybody is asked, with `needs_location`.
    """
    queries = [str(query) for query in call.args["queries"]]
    near = str(call.args.get("near") or "").strip()
    if not near and len(queries) == 1:
        queries[0], said = place_words.split_near(queries[0])
        near = said or ""
    if not queries:
        return result.done([])
    if any(place_words.is_the_thing(near, query) for query in queries):
        near = ""
    here = place_words.is_here(near) if near else _is_about_here(call, queries)
    if here:
        queries = [place_words.without_here(query) for query in queries]
    search = _Search(call, near, here=here)
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
    more: dict[str, Any] = {"nothing_for": nothing_for} if nothing_for else {}
    if search.chain.unanswered:
        more["unanswered"] = search.chain.unanswered
    return result.done(entries, **search.metadata, **more)


def _is_about_here(call: Call, queries: list[str]) -> bool:
    """Whether a search without a place is one around the person: they said so, or they want some
    place of a kind and named no town."""
    if call.about == "here" or any(place_words.without_here(q) != q for q in queries):
        return True
    return call.about == "open" and all(place_words.tag_of(query) for query in queries)


class _Search:
    """Where to look, found once for all queries."""

    def __init__(self, call: Call, near: str, *, here: bool) -> None:
        if here and call.position is None:
            raise Failure("needs_location", "where the person is is not known: ask for it")
        self.chain = PlaceChain(call)
        self._most = MOST_RESULTS
        radius = float(call.args.get("radius_km") or 0)
        self._radii = (radius,) if radius else USUAL_RADII_KM
        self.metadata: dict[str, Any] = {}
        self.origin: geo.Spot | None = None
        if here and call.position is not None:
            spot = geo.Spot(float(call.position["lat"]), float(call.position["lon"]))
            you = "you" if call.lang == "en" else "te"
            self.origin = spot
            self.metadata = {"near": call.position.get("label") or you}
        elif near:
            centre = self._centre(near)
            self.origin = centre.spot
            self.metadata = {"near": centre.label, "near_coords": centre.spot.text}

    def _centre(self, near: str) -> geo.Place:
        found = self.chain.geocode(near)
        if not found:
            raise Failure("unknown_place", "no such place: name a town too", place=near[:80])
        return found[0]

    def places(self, query: str) -> list[geo.Place]:
        """Those within the first radius that has any."""
        return self.chain.find(query, near=self.origin, radii_km=self._radii, most=self._most)


def _entry(call: Call, search: _Search, query: str, place: geo.Place) -> dict[str, Any]:
    shown = place_words.fields(place, lang=call.lang, origin=search.origin)
    return result.item(query=query, **shown)


def _failed(query: str, failure: Failure) -> dict[str, Any]:
    error = result.failure(failure.code, failure.detail, **failure.params)["error"]
    return {"ok": False, "query": query, "name": query, "error": error}
