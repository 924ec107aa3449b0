"""Places by words from Google Places (New), with the person's own key.

"Nothing found" is an empty list; a `Failure` says that nobody answered. What uses this declares
`requires = ["geopy", "httpx"]` and the hint `account:places?`.
"""

from __future__ import annotations

from zoneinfo import ZoneInfo

from executors._sdk import geo
from executors._sdk.http import Fetcher, parse_url
from executors._sdk.json_http import number, read, text
from executors._sdk.result import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from executors._sdk.call import Call
    from executors._sdk.geo import Place, Spot

KIND = "places"
_MAX_BYTES = 2_000_000
_TIMEOUT_S = 12.0
_MOST = 20
_WIDEST_M = 50_000.0
_FIELDS = ",".join(
    f"places.{name}"
    for name in (
        "displayName",
        "formattedAddress",
        "location",
        "primaryType",
        "currentOpeningHours.openNow",
        "currentOpeningHours.weekdayDescriptions",
    )
)
_REFUSED = frozenset({401, 403})


class GooglePlaces:
    """One account's places, for one call."""

    def __init__(self, call: Call, account: dict[str, Any]) -> None:
        self.name = str(account["name"])
        self._key = str(account["key"])
        self._url = f"{str(account['url']).rstrip('/')}/v1/places:searchText"
        self._lang = call.lang
        self._weekday = call.now.astimezone(ZoneInfo(call.tz)).weekday()
        self._fetcher = Fetcher(call, max_bytes=_MAX_BYTES, accept="application/json")
        self._known: dict[tuple[Any, ...], list[Place]] = {}

    def find(
        self, query: str, *, near: Spot | None = None, radius_km: float | None = None, most: int
    ) -> list[Place]:
        """The places with these words; near a spot the nearest first and none farther than the
        radius. Raises `Failure`: wrong_credentials (params `name`), http_status, network, timeout,
        and the others of fetching."""
        asked: dict[str, Any] = {"textQuery": geo.words_of(query), "languageCode": self._lang}
        asked["pageSize"] = _MOST
        if near is not None:
            centre = {"latitude": near.lat, "longitude": near.lon}
            radius = min((radius_km or 30.0) * 1000, _WIDEST_M)
            asked["locationBias"] = {"circle": {"center": centre, "radius": radius}}
            asked["rankPreference"] = "DISTANCE"
        key = (query, near, radius_km)
        if key not in self._known:
            self._known[key] = self._asked(asked)
        return geo.nearest(self._known[key], near, radius_km)[:most]

    def _asked(self, asked: dict[str, Any]) -> list[Place]:
        headers = {"X-Goog-Api-Key": self._key, "X-Goog-FieldMask": _FIELDS}
        got = self._fetcher.post(self._url, asked, headers=headers, total_timeout_s=_TIMEOUT_S)
        host = parse_url(self._url).host
        if got.status != 200:
            if got.status in _REFUSED or b"API_KEY_INVALID" in got.body:
                raise Failure("wrong_credentials", "the key is refused", name=self.name)
            raise Failure("http_status", str(got.status), status=got.status, host=host)
        found = read(got.body, host).get("places", [])
        if not isinstance(found, list):
            raise Failure("bad_answer", "the answer holds no places", host=host)
        return [place for one in found if (place := self._place(one)) is not None]

    def _place(self, found: Any) -> Place | None:
        """None for what has no name or no point of the earth."""
        if not isinstance(found, dict):
            return None
        named, at = found.get("displayName"), found.get("location")
        name = text(named.get("text")) if isinstance(named, dict) else ""
        if not name or not isinstance(at, dict):
            return None
        spot = geo.spot_at(number(at.get("latitude")), number(at.get("longitude")))
        if spot is None:
            return None
        is_open, hours = self._hours(found.get("currentOpeningHours"))
        return geo.Place(
            name,
            text(found.get("formattedAddress")),
            spot,
            text(found.get("primaryType"), 60),
            is_open=is_open,
            hours=hours,
        )

    def _hours(self, told: Any) -> tuple[bool | None, str]:
        """Whether it is open now, and the hours of today without the name of the day."""
        if not isinstance(told, dict):
            return None, ""
        is_open = told.get("openNow")
        week = told.get("weekdayDescriptions")
        today = ""
        if isinstance(week, list) and len(week) == 7:
            _, _, today = text(week[self._weekday], 100).partition(": ")
        return is_open if isinstance(is_open, bool) else None, today
