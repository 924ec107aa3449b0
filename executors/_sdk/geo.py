"""Places by words and addresses by coordinates: Photon, which geopy speaks, over the way out.

geopy writes the questions and measures distances; every byte goes through `executors._sdk.http`,
so the broker, the limits and the user agent are those of any other call. What uses this declares
`requires = ["geopy", "httpx"]`.

"Nothing found" is an empty list; a `Failure` says that nobody could be asked. An answer is kept
for the rest of the call, and the public server is asked once a second at most.
"""

from __future__ import annotations

import json
import math
import re
import time
from dataclasses import dataclass
from functools import partial
from urllib.parse import urlencode

from geopy.adapters import BaseSyncAdapter
from geopy.distance import geodesic
from geopy.geocoders.photon import Photon

from executors._sdk.http import Fetcher, parse_url
from executors._sdk.result import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from executors._sdk.call import Call

PUBLIC_ENDPOINT = "https://photon.komoot.io"
SERVICE = "photon"
MOST_MATCHES = 20
SAME_PLACE_M = 100.0

_MAX_BYTES = 2_000_000
_TIMEOUT_S = 12.0
_PUBLIC_PAUSE_S = 1.0
_EARTH_KM = 20_015.0
_KM_PER_DEGREE = 111.0
# Where the number of a house stands before its street.
_NUMBER_FIRST = frozenset("GB IE US CA AU NZ FR IN ZA".split())
_PAIR = re.compile(
    r"\s*\(?\s*(?P<lat>[+-]?\d{1,2}(?:[.,]\d{1,15})?)\s*°?\s*(?P<ns>[NnSs])?"
    r"(?:\s*[,;]\s*|\s+)"
    r"(?P<lon>[+-]?\d{1,3}(?:[.,]\d{1,15})?)\s*°?\s*(?P<ew>[EeWwOo])?\s*\)?\s*"
)


@dataclass(frozen=True, slots=True)
class Spot:
    """A point of the earth, in degrees."""

    lat: float
    lon: float

    @property
    def text(self) -> str:
        """`45.4642,9.19`: to a tenth of a metre, as `parse_spot` reads it."""
        return f"{_short(self.lat)},{_short(self.lon)}"

    @property
    def map(self) -> str:
        """A page that shows it on a map."""
        point = f"{self.lat:.5f}/{self.lon:.5f}"
        return f"https://www.openstreetmap.org/?mlat={self.lat:.5f}&mlon={self.lon:.5f}#map=17/{point}"

    def metres_to(self, other: Spot) -> float:
        """Along the surface, as the crow flies."""
        return float(geodesic((self.lat, self.lon), (other.lat, other.lon)).m)


@dataclass(frozen=True, slots=True)
class Place:
    """A place with a name. `address` may be empty; `kind` is the provider's word for it. `is_open`
    now and the `hours` of today are known of few."""

    name: str
    address: str
    spot: Spot
    kind: str = ""
    is_open: bool | None = None
    hours: str = ""

    @property
    def label(self) -> str:
        """Name and address on one line, what they share only once."""
        if not self.address or self.address.casefold().startswith(self.name.casefold()):
            return self.address or self.name
        return f"{self.name}, {self.address}"


def parse_spot(text: str) -> Spot | None:
    """`45.4642, 9.19`, `45,4642; 9,19`, `51.5 N 0.12 W`; None for anything else."""
    match = _PAIR.fullmatch(text[:80])
    if match is None:
        return None
    lat, lon = (float(match[name].replace(",", ".")) for name in ("lat", "lon"))
    if (match["ns"] or "").upper() == "S":
        lat = -lat
    if (match["ew"] or "").upper() in {"W", "O"}:  # ovest
        lon = -lon
    return spot_at(lat, lon)


def geocode(call: Call, address: str, *, most: int = 5) -> list[Place]:
    """The places that a typed address may mean, the likeliest first.

    One: it is clear. Several: the person chooses; two names of the same spot count once. None:
    there is no such address. Coordinates mean themselves. Raises `Failure` when nobody answers.
    """
    return Geography(call).geocode(address, most=most)


class Geography:
    """The places of the world, for one call.

    Asks the server at the address that the call gives for `photon`, else the public one. Raises
    `Failure` when it is given as "": the service is off.
    """

    def __init__(self, call: Call) -> None:
        endpoint = call.services.get(SERVICE, PUBLIC_ENDPOINT)
        if not endpoint:
            detail = "places are not looked up here: the service is off"
            raise Failure("service_off", detail, setting="METNOS_PHOTON_URL")
        url = parse_url(endpoint)
        port = f":{url.port}" if url.port else ""
        pause = _PUBLIC_PAUSE_S if endpoint == PUBLIC_ENDPOINT else 0.0
        asker = _Asker(call, pause_s=pause)
        self._photon = _Photon(
            scheme=url.scheme,
            domain=f"{url.host}{port}{url.path}",
            timeout=_TIMEOUT_S,
            user_agent=call.user_agent,
            adapter_factory=lambda **_: asker,
        )
        # It knows few languages and refuses the others; in "default" names are those of the place.
        self._lang = "en" if call.lang == "en" else "default"

    def geocode(self, address: str, *, most: int = 5) -> list[Place]:
        """See the function of this name."""
        spot = parse_spot(address)
        if spot is not None:
            return [self.at(spot) or Place(spot.text, "", spot)]
        found = self._photon.geocode(
            words_of(address), exactly_one=False, limit=most, language=self._lang
        )
        return _apart(_places(found))

    def find(
        self,
        query: str,
        *,
        near: Spot | None = None,
        radius_km: float | None = None,
        most: int = MOST_MATCHES,
    ) -> list[Place]:
        """Places with these words in their name or address; near a spot, the nearest first and
        none farther than the radius."""
        bias = (near.lat, near.lon) if near else None
        box = _box(near, radius_km) if near and radius_km else None
        found = self._photon.geocode(
            words_of(query),
            exactly_one=False,
            limit=MOST_MATCHES,
            location_bias=bias,
            bbox=box,
            language=self._lang,
        )
        return nearest(_places(found), near, radius_km)[:most]

    def around(
        self, tags: Sequence[str], near: Spot, *, radius_km: float, most: int = MOST_MATCHES
    ) -> list[Place]:
        """Places of these kinds (`amenity:pharmacy`), the nearest first."""
        found = self._photon.around(
            (near.lat, near.lon), tags, radius_km=radius_km, limit=most, language=self._lang
        )
        return nearest(_places(found), near, radius_km)[:most]

    def at(self, spot: Spot) -> Place | None:
        """What is there: the address nearest to a spot."""
        found = self._photon.reverse(
            (spot.lat, spot.lon), exactly_one=False, limit=1, language=self._lang
        )
        places = _places(found)
        return places[0] if places else None


class _Photon(Photon):  # type: ignore[misc]
    """geopy's Photon, which also looks around for what has a tag."""

    def around(
        self,
        point: tuple[float, float],
        tags: Sequence[str],
        *,
        radius_km: float,
        limit: int,
        language: str,
    ) -> Any:
        asked: dict[str, Any] = {"lat": point[0], "lon": point[1], "lang": language}
        asked |= {"limit": limit, "radius": round(radius_km, 3), "osm_tag": list(tags)}
        url = f"{self.reverse_api}?{urlencode(asked, doseq=True)}"
        return self._call_geocoder(url, partial(self._parse_json, exactly_one=False))


class _Asker(BaseSyncAdapter):  # type: ignore[misc]
    """How geopy reaches the server. Nothing of what comes back is believed before it is looked
    at: geopy gets only features that have a name or an address, and a point of the earth."""

    def __init__(self, call: Call, *, pause_s: float) -> None:
        super().__init__(proxies=None, ssl_context=None)
        self._fetcher = Fetcher(call, max_bytes=_MAX_BYTES, accept="application/json")
        self._pause_s = pause_s
        self._asked_at: float | None = None
        self._known: dict[str, dict[str, Any]] = {}

    def get_text(self, url: str, *, timeout: float, headers: Mapping[str, str]) -> str:
        return json.dumps(self.get_json(url, timeout=timeout, headers=headers))

    def get_json(self, url: str, *, timeout: float, headers: Mapping[str, str]) -> dict[str, Any]:
        if url not in self._known:
            self._wait()
            body = self._fetcher.get(url, total_timeout_s=timeout).body
            self._known[url] = {"features": _features(body, parse_url(url).host)}
        return self._known[url]

    def _wait(self) -> None:
        now = time.monotonic()
        if self._asked_at is not None:
            time.sleep(max(0.0, self._asked_at + self._pause_s - now))
        self._asked_at = time.monotonic()


def _features(body: bytes, host: str) -> list[dict[str, Any]]:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError) as exc:
        raise Failure("bad_answer", "the answer is no JSON", host=host) from exc
    listed = document.get("features") if isinstance(document, dict) else None
    if not isinstance(listed, list):
        raise Failure("bad_answer", "the answer holds no places", host=host)
    return [feature for feature in listed if _is_place(feature)]


def _is_place(feature: Any) -> bool:
    try:
        lon, lat = feature["geometry"]["coordinates"][:2]
        properties = feature["properties"]
    except (TypeError, KeyError, ValueError):
        return False
    if not isinstance(properties, dict) or spot_at(lat, lon) is None:
        return False
    # geopy joins some of them: they have to be texts.
    kept = {k: _plain(v) for k, v in properties.items() if isinstance(v, (str, int))}
    feature["properties"] = {key: text for key, text in kept.items() if text}
    return bool(_name(feature["properties"]))


def spot_at(lat: Any, lon: Any) -> Spot | None:
    """The point of these degrees; None for what is none of the earth."""
    numbers = [isinstance(v, (int, float)) and not isinstance(v, bool) for v in (lat, lon)]
    if not all(numbers) or not (math.isfinite(lat) and math.isfinite(lon)):
        return None
    if not (-90 <= lat <= 90 and -180 <= lon <= 180):
        return None
    return Spot(round(float(lat), 7), round(float(lon), 7))


def _short(degrees: float) -> str:
    # Adding 0.0 makes -0.0 a plain zero.
    return f"{round(degrees, 6) + 0.0:.6f}".rstrip("0").rstrip(".")


def _plain(value: Any) -> str:
    """Words of strangers on one line."""
    text = "".join(c if c.isprintable() else " " for c in str(value)[:300])
    return " ".join(text.split())


def words_of(text: str) -> str:
    """Words to look for, on one line. Raises `Failure` invalid_args when there are none."""
    words = _plain(text)
    if not words:
        raise Failure("invalid_args", "nothing to look for")
    return words[:200]


def _places(found: Any) -> list[Place]:
    """geopy's locations as places."""
    places = []
    for location in found or ():
        properties = location.raw["properties"]
        spot = spot_at(location.latitude, location.longitude)
        if spot is not None:
            name = _name(properties)
            address = _address(properties, name)
            places.append(Place(name, address, spot, properties.get("osm_value", "")))
    return places


def _name(properties: Mapping[str, str]) -> str:
    return properties.get("name") or _street(properties) or properties.get("city", "")


def _street(properties: Mapping[str, str]) -> str:
    street, number = properties.get("street", ""), properties.get("housenumber", "")
    if not street or not number:
        return street
    if properties.get("countrycode", "").upper() in _NUMBER_FIRST:
        return f"{number} {street}"
    return f"{street} {number}"


def _address(properties: Mapping[str, str], name: str) -> str:
    town = properties.get("city") or properties.get("county") or ""
    town = " ".join(filter(None, (properties.get("postcode", ""), town)))
    parts = [_street(properties), town]
    if not any(parts):
        parts.append(properties.get("state", ""))
    parts.append(properties.get("country", ""))
    return ", ".join(part for part in dict.fromkeys(parts) if part and part != name)


def nearest(places: list[Place], near: Spot | None, radius_km: float | None) -> list[Place]:
    """Those within the radius, the nearest first; without a spot, in their order."""
    if near is None:
        return _apart(places)
    measured = [(near.metres_to(place.spot), place) for place in places]
    limit = radius_km * 1000 if radius_km else _EARTH_KM * 1000
    inside = [pair for pair in measured if pair[0] <= limit]
    return _apart([place for _, place in sorted(inside, key=lambda pair: pair[0])])


def _apart(places: list[Place]) -> list[Place]:
    """Without those of the same name that lie at the same spot: a shop is often mapped twice."""
    kept: list[Place] = []
    for place in places:
        name = place.name.casefold()
        if not any(
            name == other.name.casefold() and place.spot.metres_to(other.spot) <= SAME_PLACE_M
            for other in kept
        ):
            kept.append(place)
    return kept


def _box(near: Spot, radius_km: float) -> list[tuple[float, float]]:
    """South-west and north-east corners of what holds the circle."""
    high = min(radius_km / _KM_PER_DEGREE, 90.0)
    wide = min(high / max(math.cos(math.radians(near.lat)), 0.01), 180.0)
    return [
        (max(near.lat - high, -90.0), max(near.lon - wide, -180.0)),
        (min(near.lat + high, 90.0), min(near.lon + wide, 180.0)),
    ]
