"""A server on loopback that answers as Photon does: GeoJSON, its parameters, its refusals."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

LANGUAGES = ("default", "de", "en", "fr")


def feature(lat: float, lon: float, **properties: Any) -> dict[str, Any]:
    """One place as Photon writes it."""
    return {
        "type": "Feature",
        "geometry": {"type": "Point", "coordinates": [lon, lat]},
        "properties": {"osm_type": "N", "osm_id": 240109189, "type": "house", **properties},
    }


_ROME: dict[str, str] = {"city": "Borgo", "country": "Italia", "countrycode": "IT"}
PLACES = [
    feature(44.6, 10.9, name="Borgo", osm_key="place", osm_value="city", country="Italia"),
    feature(
        44.605, 10.9, name="Farmacia Lontana", street="Via Lunga", housenumber="90",
        postcode="41100", osm_key="amenity", osm_value="pharmacy", **_ROME,
    ),
    feature(
        44.601, 10.9, name="Farmacia Centrale", street="Via Prima", housenumber="12",
        postcode="41100", osm_key="amenity", osm_value="pharmacy", **_ROME,
    ),
    feature(
        44.60101, 10.9, name="farmacia centrale", osm_key="amenity", osm_value="pharmacy", **_ROME
    ),
    feature(44.85, 10.9, name="Aeroporto di Borgo", osm_key="aeroway", osm_value="aerodrome"),
    feature(
        44.602, 10.9, name="Ramen Sette", street="Via Prima", housenumber="3",
        osm_key="amenity", osm_value="restaurant", **_ROME,
    ),
    feature(44.61, 10.91, street="Via Doppia", housenumber="1", osm_value="house", **_ROME),
    feature(
        45.4, 9.2, street="Via Doppia", housenumber="1", osm_value="house",
        city="Altrove", country="Italia", countrycode="IT",
    ),
    feature(
        51.5, -0.1, street="Low Road", housenumber="5", osm_value="house",
        city="Hamlet", country="United Kingdom", countrycode="GB",
    ),
]  # fmt: skip


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: PhotonServer

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        asked = parse_qs(parts.query)
        self.server.seen.append((parts.path, asked, dict(self.headers.items())))
        self.server.hold.wait(30)
        if self.server.moved_to is not None:
            self.send_response(302)
            self.send_header("Location", self.server.moved_to)
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif self.server.broken is not None:
            status, body = self.server.broken
            self.reply(body, status)
        elif asked.get("lang", ["default"])[0] not in LANGUAGES:
            said = [{"message": f"Language is not supported. Supported are: {LANGUAGES}"}]
            self.reply(json.dumps({"lang": said}).encode(), 400)
        else:
            found = _search(asked) if parts.path == "/api" else _reverse(asked)
            limit = int(asked.get("limit", ["15"])[0])
            whole = {"type": "FeatureCollection", "features": found[:limit]}
            self.reply(json.dumps(whole).encode())

    def log_message(self, format: str, *args: object) -> None:
        pass

    def reply(self, body: bytes, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json;charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _search(asked: dict[str, list[str]]) -> list[dict[str, Any]]:
    words = asked["q"][0].casefold().replace(",", " ").split()
    box = [float(part) for part in asked.get("bbox", ["-180,-90,180,90"])[0].split(",")]
    found = []
    for place in PLACES:
        lon, lat = place["geometry"]["coordinates"]
        text = " ".join(map(str, place["properties"].values())).casefold()
        inside = box[0] <= lon <= box[2] and box[1] <= lat <= box[3]
        if inside and all(word in text for word in words):
            found.append(place)
    return found


def _reverse(asked: dict[str, list[str]]) -> list[dict[str, Any]]:
    lat, lon = float(asked["lat"][0]), float(asked["lon"][0])
    radius = float(asked.get("radius", ["1"])[0])
    tags = asked.get("osm_tag")

    def km(place: dict[str, Any]) -> float:
        there_lon, there_lat = place["geometry"]["coordinates"]
        return 111 * math.hypot(there_lat - lat, (there_lon - lon) * math.cos(math.radians(lat)))

    def fits(place: dict[str, Any]) -> bool:
        of = place["properties"]
        return tags is None or f"{of.get('osm_key')}:{of.get('osm_value')}" in tags

    return sorted((p for p in PLACES if km(p) <= radius and fits(p)), key=km)


class PhotonServer(ThreadingHTTPServer):
    """`seen`: path, parameters and headers of every request. `broken`: what it answers to all,
    `moved_to`: where it sends all. It answers while `hold` is set."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.seen: list[tuple[str, dict[str, list[str]], dict[str, str]]] = []
        self.broken: tuple[int, bytes] | None = None
        self.moved_to: str | None = None
        self.hold = threading.Event()
        self.hold.set()

    @property
    def endpoint(self) -> str:
        return f"http://localhost:{self.server_port}"

    @property
    def grant(self) -> str:
        return f"localhost:{self.server_port}"


@contextmanager
def photon_server() -> Iterator[PhotonServer]:
    server = PhotonServer()
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
