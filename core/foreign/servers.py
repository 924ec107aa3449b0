"""Connected servers while the engine runs: started when a tool is first called, watched, ended.

What is called has been through the gate. Before a call this looks whether the server still says of
the tool what the host approved; if not, the tool sleeps and nothing is sent. A server that ends is
started again at the next call, later each time it fails.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from core.catalog.foreign import SeenTool, clean
from core.catalog.loaded import ForeignTool, LoadedExecutor, LoadedSdk
from core.catalog.manifest import Limits, Manifest
from core.clock import Clock
from core.errors import ErrorCode, SecretUnreadable
from core.foreign.link import Link, LinkFailed, ServerSaidNo
from core.foreign.results import failed, observation_of
from core.observation import Effects, Observation, Provenance
from core.redaction import mask_values
from core.store import mcp
from core.store.mcp import Server
from core.store.stores import Stores

log = logging.getLogger(__name__)

# A server that nobody called for so long is ended; the next call starts it again.
IDLE_S = 600.0
FIRST_WAIT_S = 2.0
LONGEST_WAIT_S = 300.0
_MOST_VALUE = 300
_MOST_SAID = 1500


@dataclass(slots=True)
class _Place:
    """One server: its connection, what it listed when it was looked at last, its failures."""

    server: Server
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    link: Link | None = None
    listed: dict[str, SeenTool] = field(default_factory=dict)
    secrets: dict[str, str] = field(default_factory=dict)
    failures: int = 0
    not_before: float = 0.0
    calls: int = 0
    idle: asyncio.Task[None] | None = None


class Servers:
    """Runs calls of foreign tools (a `Runner`). Nothing is started before it is needed."""

    def __init__(
        self, stores: Stores, clock: Clock, folder: Path, *, idle_s: float = IDLE_S
    ) -> None:
        self._idle_s = idle_s
        self._stores, self._clock, self._folder = stores, clock, folder
        self._places: dict[str, _Place] = {}

    async def run(
        self,
        executor: LoadedExecutor,
        sdk: LoadedSdk,
        call: Mapping[str, Any],
        *,
        mode: Literal["run", "preview"] = "run",
        timeout_s: float | None = None,
        limits: Limits | None = None,
        on_progress: Callable[[int | None, int | None], None] | None = None,
    ) -> Observation:
        """Call a tool; what comes back is always external. Never raises for the call's own
        failure. Cancelled or out of time: the program is ended, the next call starts it anew."""
        tool, manifest = executor.foreign, executor.manifest
        if tool is None:
            raise ValueError(f"{executor.name} is no foreign tool")
        if mode == "preview":
            return Observation(ok=True, content=_preview(tool, call["args"]))
        most = (limits or manifest.limits).output_bytes
        seconds = manifest.timeout_s if timeout_s is None else timeout_s
        sent = False
        place: _Place | None = None
        try:
            async with asyncio.timeout(seconds):
                place = await self._place(tool.server)
                async with place.lock:
                    link = await self._open(place)
                if self._is_other(place, tool):
                    return _asleep(tool)
                sent = True
                args = _theirs(call["args"], tool)
                place.calls += 1
                try:
                    answer = await link.call(tool.tool, args, on_progress)
                finally:
                    place.calls -= 1
                    self._rest(place)
        except TimeoutError:
            await self._end(place)
            detail, left = f"no answer in {seconds:g} s", _left(manifest, sent)
            return failed(ErrorCode.TIMEOUT, detail, left, seconds=seconds)
        except asyncio.CancelledError:
            await asyncio.shield(self._end(place))
            raise
        except ServerSaidNo as exc:
            return self._masked(
                place,
                failed(
                    ErrorCode.EXECUTOR_CRASHED,
                    clean(str(exc), most=500),
                    _left(manifest, sent),
                ),
            )
        except LinkFailed as exc:
            await self._end(place, failed=True)
            code = ErrorCode.OUTPUT_TOO_LARGE if exc.flooded else ErrorCode.SERVER_DOWN
            return failed(code, str(exc), _left(manifest, sent), name=tool.server, bytes=most)
        except SecretUnreadable:
            detail = "a value of its environment does not open"
            return failed(ErrorCode.SERVER_DOWN, detail, Effects.NONE, name=tool.server)
        found = observation_of(answer, mutating=manifest.is_mutating, most=most)
        return self._masked(place, found)

    async def look(self, server: Server) -> list[SeenTool]:
        """Connect if need be, ask what tools there are, and write it down. Raises `LinkFailed`,
        `ServerSaidNo` and `SecretUnreadable`."""
        place = await self._place(server.name, server)
        async with place.lock:
            link = await self._open(place, fresh=True)
            if link is not None:
                await self._list(place, link)
        return list(place.listed.values())

    async def close(self) -> None:
        """End every server. Twice is fine."""
        places, self._places = list(self._places.values()), {}
        for place in places:
            if place.idle is not None:
                place.idle.cancel()
        await asyncio.gather(*(self._end(place) for place in places), return_exceptions=True)

    async def _place(self, name: str, known: Server | None = None) -> _Place:
        """The place of a server as it is connected now; another target is another server."""
        server = known
        if server is None:
            async with self._stores.main.read() as tx:
                server = await mcp.find(tx, name)
        place = self._places.get(name)
        if place is not None and place.server != server:
            del self._places[name]
            await self._end(place)
            place = None
        if server is None:
            raise LinkFailed("it is not connected any more")
        if place is None:
            place = self._places.setdefault(name, _Place(server))
        return place

    async def _open(self, place: _Place, *, fresh: bool = False) -> Link:
        """The open connection, whose list of tools is known. Raises `LinkFailed`."""
        link = place.link
        if link is not None and link.alive:
            if link.changed:
                await self._list(place, link)
            return link
        if link is not None:
            await self._end(place, failed=True)
        wait = place.not_before - self._clock.monotonic()
        if wait > 0 and not fresh:
            raise LinkFailed(f"it failed {place.failures} times; tried again in {wait:.0f} s")
        server = place.server
        async with self._stores.main.read() as tx:
            values, missing = await mcp.environment(tx, self._stores.vault, server)
        if missing:
            raise LinkFailed(f"no value for {', '.join(missing)}")
        folder = self._folder / server.name
        await asyncio.to_thread(folder.mkdir, mode=0o700, parents=True, exist_ok=True)
        link = Link(argv=server.argv, url=server.url, secrets=values, folder=folder)
        place.secrets = values
        await link.open()
        place.link = link
        await self._list(place, link)
        place.failures = 0
        return link

    async def _list(self, place: _Place, link: Link) -> None:
        seen = await link.tools()
        place.listed = {one.tool: one for one in seen}
        async with self._stores.main.write() as tx:
            await mcp.saw(tx, place.server.name, seen)

    def _is_other(self, place: _Place, tool: ForeignTool) -> bool:
        seen = place.listed.get(tool.tool)
        return seen is None or seen.digest != tool.digest

    async def _end(self, place: _Place | None, *, failed: bool = False) -> None:
        if place is None:
            return
        if failed and place.not_before <= self._clock.monotonic():
            place.failures += 1
            wait = min(FIRST_WAIT_S * 2 ** (place.failures - 1), LONGEST_WAIT_S)
            place.not_before = self._clock.monotonic() + wait
        link, place.link = place.link, None
        if link is not None:
            await link.close(now=True)

    def _rest(self, place: _Place) -> None:
        """End the server when nobody calls it for a while."""

        async def wait() -> None:
            await asyncio.sleep(self._idle_s)
            async with place.lock:
                link, idle = place.link, place.calls == 0
                if link is not None and idle:
                    place.link = None
                    await link.close()

        if place.idle is not None:
            place.idle.cancel()
        place.idle = asyncio.create_task(wait())

    def _masked(self, place: _Place | None, found: Observation) -> Observation:
        """What came back without the values that the host entrusted."""
        secrets = [] if place is None else [value for value in place.secrets.values() if value]
        if not secrets:
            return found
        return Observation.from_json(mask_values(found.to_json(), secrets))


def _left(manifest: Manifest, sent: bool) -> Effects:
    return Effects.UNKNOWN if sent and manifest.is_mutating else Effects.NONE


def _asleep(tool: ForeignTool) -> Observation:
    detail = "the server says something else of it than what was approved; it was not called"
    return Observation(
        ok=False,
        error=failed(ErrorCode.TOOL_ASLEEP, detail, Effects.NONE, name=tool.tool).error,
        provenance=Provenance.OWN,
    )


def _theirs(args: Mapping[str, Any], tool: ForeignTool) -> dict[str, Any]:
    return {tool.names.get(name, name): value for name, value in args.items()}


def _preview(tool: ForeignTool, args: Mapping[str, Any]) -> dict[str, Any]:
    """What a person is asked about: the tool, and every argument that it would be given."""
    said = [f"{name}: {_short(value)}" for name, value in args.items()]
    whole = f"{tool.server} · {clean(tool.tool, most=60)}"
    if said:
        whole = f"{whole} ({clean('; '.join(said), most=_MOST_SAID)})"
    return {
        "targets": [whole],
        "before": [],
        "after": [],
        "count": 1,
        "undo": None,
    }


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return clean(text, most=_MOST_VALUE)
