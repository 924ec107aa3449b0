"""The lowest version of each executor that may still run here. Durable, and only ever raised.

An old release with a known hole is still well signed; the floor is what keeps it from coming back.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from core.catalog.files import locked, write_private
from core.catalog.manifest import version_key
from core.errors import CatalogError


class Floors:
    """`private/floors.json`: executor name → version."""

    def __init__(self, private_dir: Path) -> None:
        self._path = private_dir / "floors.json"
        self._lock = private_dir / "floors.lock"

    @property
    def path(self) -> Path:
        return self._path

    def read(self) -> dict[str, str]:
        """All floors; none yet: empty. Raises `CatalogError` when the file is damaged, because a
        floor that is not known cannot be kept."""
        try:
            floors = json.loads(self._path.read_bytes())
            for version in floors.values():
                version_key(version)
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, AttributeError, RecursionError) as exc:
            raise CatalogError("floors.json is damaged; metnos setup makes it anew") from exc
        return dict(floors)

    def raise_to(self, versions: Mapping[str, str]) -> None:
        """Raise the floors of these executors; a version below its floor changes nothing."""
        with locked(self._lock):
            floors = self.read()
            higher = {name: v for name, v in versions.items() if is_above(v, floors.get(name))}
            if higher:
                self._write(floors | higher)

    def lower_to(self, name: str, version: str) -> None:
        """Set one floor, lower too: only on a person's explicit order."""
        with locked(self._lock):
            self._write(self.read() | {name: version})

    def reset(self, versions: Mapping[str, str]) -> None:
        """Write a damaged file anew."""
        with locked(self._lock):
            self._write(dict(versions))

    def _write(self, floors: Mapping[str, str]) -> None:
        write_private(self._path, json.dumps(dict(sorted(floors.items())), indent=1).encode())


def is_above(version: str, floor: str | None) -> bool:
    return floor is None or version_key(version) > version_key(floor)


def is_below(version: str, floor: str | None) -> bool:
    return floor is not None and version_key(version) < version_key(floor)
