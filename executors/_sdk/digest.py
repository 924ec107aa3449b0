"""Fingerprints of files: of the whole content, read in blocks, so that size does not matter."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

ALGORITHMS = ("sha256", "sha512", "sha1", "md5")
# Small enough to stay in the processor's cache, large enough that reading costs nothing.
BLOCK = 1 << 18
# How often somebody is told how far a file is.
_TOLD_EVERY = 1 << 27


def digest_of(
    fd: int, algorithm: str = "sha256", *, told: Callable[[int], None] | None = None
) -> str:
    """The fingerprint of an open file in hexadecimal digits. `told` hears after each 128 MiB how
    many bytes were read."""
    import hashlib

    made = hashlib.new(algorithm, usedforsecurity=False)
    at = 0
    while block := os.pread(fd, BLOCK, at):
        made.update(block)
        at += len(block)
        if told is not None and at % _TOLD_EVERY == 0:
            told(at)
    return made.hexdigest()
