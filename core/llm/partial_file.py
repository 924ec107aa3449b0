"""A large file while it is being assembled: what is kept, what must come again.

Knows nothing of where the bytes come from.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

_BLOCK = 4 << 20


@dataclass
class PartialFile:
    """The file while it grows, and beside it the parts that were appended whole.

    Bytes from the publisher are kept as they come: they are a beginning of the file however far
    they reach. Bytes of a part count only once the part stands in the list.
    """

    target: Path
    parts: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        with suppress(OSError, ValueError, TypeError, LookupError):
            data = json.loads(self._state.read_text(encoding="utf-8"))
            self.parts = [
                {"name": str(p["name"]), "size": int(p["size"]), "sha256": str(p["sha256"])}
                for p in data["parts"]
            ]

    @property
    def path(self) -> Path:
        return self.target.with_suffix(".partial")

    @property
    def _state(self) -> Path:
        return self.target.with_suffix(".partial.json")

    @property
    def kept(self) -> int:
        """Bytes that need not come again."""
        try:
            size = self.path.stat().st_size
        except OSError:
            return 0
        return size if not self.parts else min(size, sum(p["size"] for p in self.parts))

    def trim(self) -> None:
        """Drop a half-written part, and every part from the first that is damaged on."""
        if not self.parts or not self.path.exists():
            self.parts = []
            return
        good = 0
        with self.path.open("r+b") as file:
            for part in self.parts:
                if digest_of(blocks_of(file, part["size"])) != part["sha256"]:
                    break
                good += 1
            self.parts = self.parts[:good]
            file.truncate(sum(p["size"] for p in self.parts))
        self._save()

    def append(self, name: str, blocks: Iterator[bytes]) -> None:
        """Add one part. Its bytes are on the disk before the list says so."""
        digest, size = hashlib.sha256(), 0
        with self.path.open("ab") as file:
            for block in blocks:
                file.write(block)
                digest.update(block)
                size += len(block)
            file.flush()
            os.fsync(file.fileno())
        self.parts.append({"name": name, "size": size, "sha256": digest.hexdigest()})
        self._save()

    def restart(self) -> None:
        self.discard()
        self.parts = []

    def discard(self) -> None:
        self.path.unlink(missing_ok=True)
        self._state.unlink(missing_ok=True)

    def _save(self) -> None:
        fresh = self._state.with_suffix(".new")
        fresh.write_text(json.dumps({"parts": self.parts}), encoding="utf-8")
        fresh.replace(self._state)


def sha256_of(path: Path) -> str:
    """The SHA-256 of a whole file, in hexadecimal."""
    with path.open("rb") as file:
        return digest_of(blocks_of(file))


def digest_of(blocks: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for block in blocks:
        digest.update(block)
    return digest.hexdigest()


def blocks_of(file: IO[bytes], size: int | None = None) -> Iterator[bytes]:
    """Blocks of an open file from where it stands: `size` bytes, or all that is left."""
    left = size
    while left is None or left > 0:
        block = file.read(_BLOCK if left is None else min(_BLOCK, left))
        if not block:
            return
        left = None if left is None else left - len(block)
        yield block
