"""Who is asked about places: Google Places with the person's own keys, then Photon.

The first who has a match wins. That nobody has one and that nobody could be asked are different
answers. Who failed with a key is not asked again in the same call.
"""

from __future__ import annotations

from executors._sdk import geo, google_places, place_words
from executors._sdk.result import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from executors._sdk.call import Call
    from executors._sdk.geo import Geography, Place, Spot
    from executors._sdk.google_places import GooglePlaces

PHOTON = "Photon"
_WORDS = {"it": ("chiave rifiutata", "nessuna risposta"), "en": ("key refused", "no answer")}
# A mistake of the question is everybody's.
_OURS = frozenset({"invalid_args", "bad_text"})


class PlaceChain:
    """Those who are asked, for one call. Every search raises the first `Failure` when nobody
    answered: of Google Places or of Photon, as far as each is there."""

    def __init__(self, call: Call) -> None:
        self._call = call
        kept = [one for one in call.accounts if one.get("kind") == google_places.KIND]
        self._googles = [google_places.GooglePlaces(call, one) for one in kept]
        self._world: Geography | None = None
        self._failed: dict[str, Failure] = {}
        if not kept:
            self._world = geo.Geography(call)

    @property
    def unanswered(self) -> str:
        """Who did not answer, and why, for people: `mappe: chiave rifiutata`; "" when all did."""
        refused, silent = _WORDS["en" if self._call.lang == "en" else "it"]
        return ", ".join(
            f"{name}: {refused if failure.code == 'wrong_credentials' else silent}"
            for name, failure in self._failed.items()
            if failure.code != "service_off"
        )

    def geocode(self, address: str, *, most: int = 1) -> list[Place]:
        """The places that an address or a name may mean, the likeliest first; coordinates mean
        themselves."""
        spot = geo.parse_spot(address)
        if spot is not None:
            return [geo.Place(spot.text, "", spot)]
        return self._first(
            lambda google: google.find(address, most=most),
            lambda world: world.geocode(address, most=most),
        )

    def find(
        self, query: str, *, near: Spot | None, radii_km: Sequence[float], most: int
    ) -> list[Place]:
        """The places of a kind or with these words; near a spot those within the first radius that
        has any, the nearest first."""

        def of_google(google: GooglePlaces) -> list[Place]:
            if near is None:
                return google.find(query, most=most)
            all_of_them = google.find(query, near=near, radius_km=max(radii_km), most=most)
            inside = (geo.nearest(all_of_them, near, radius) for radius in sorted(radii_km))
            return next((places for places in inside if places), [])

        return self._first(of_google, lambda world: _of_photon(world, query, near, radii_km, most))

    def _first(
        self,
        of_google: Callable[[GooglePlaces], list[Place]],
        of_photon: Callable[[Geography], list[Place]],
    ) -> list[Place]:
        is_answered = False
        failures: list[Failure] = []
        for google in self._googles:
            try:
                if google.name in self._failed:
                    raise self._failed[google.name]
                found = of_google(google)
            except Failure as failure:
                if failure.code in _OURS:
                    raise
                self._failed[google.name] = failure
                failures.append(failure)
            else:
                if found:
                    return found
                is_answered = True
        try:
            if self._world is None:
                self._world = geo.Geography(self._call)
            return of_photon(self._world)
        except Failure as failure:
            if failure.code in _OURS:
                raise
            if not is_answered:
                raise (failures or [failure])[0] from None
            self._failed[PHOTON] = failure
        return []


def _of_photon(
    world: Geography, query: str, near: Spot | None, radii_km: Sequence[float], most: int
) -> list[Place]:
    if near is None:
        return world.find(query, most=most)
    tag = place_words.tag_of(query)
    for radius in radii_km:
        found: list[Place] = []
        if tag is not None:
            found = world.around([tag], near, radius_km=radius, most=most)
        found = found or world.find(query, near=near, radius_km=radius, most=most)
        if found:
            return found
    return []
