"""Vectors of requests: how near two are, and how they lie in the store. Pure.

A vector never decides (near misses lie nearer than paraphrases): it is a second lock beside
equality of meaning. Vectors of different embedders are never compared.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

Vector = tuple[float, ...]
"""Of length 1, so that the product of two is their cosine."""

MOST_PLACES = 8192
_SLACK = 0.01
"""How far from 1 the length of a stored vector may be: it lost digits on its way."""


def cosine(one: Vector, other: Vector) -> float:
    """From -1 to 1; vectors of other lengths are as unlike as can be."""
    if len(one) != len(other):
        return -1.0
    return sum(a * b for a, b in zip(one, other, strict=True))


def unit(values: Sequence[float]) -> Vector:
    """The same direction with length 1. Raises `ValueError` for what has none."""
    if not 0 < len(values) <= MOST_PLACES:
        raise ValueError("no vector")
    norm = math.hypot(*values)
    if not norm or not math.isfinite(norm):
        raise ValueError("no direction")
    return tuple(value / norm for value in values)


def packed(vector: Vector) -> bytes:
    """As it is stored: 4 bytes a place, little end first."""
    return struct.pack(f"<{len(vector)}f", *vector)


def unpacked(data: object) -> Vector | None:
    """A stored vector; None for what is none, or is damaged."""
    if not isinstance(data, bytes) or not data or len(data) % 4 or len(data) > 4 * MOST_PLACES:
        return None
    vector = struct.unpack(f"<{len(data) // 4}f", data)
    norm = math.hypot(*vector)
    return vector if abs(norm - 1) <= _SLACK else None


def floor_of(same: Sequence[float], share: float = 0.98) -> float:
    """The cosine below which a hit is none: nearly all pairs that mean the same lie above it.
    Raises `ValueError` without pairs."""
    if not same:
        raise ValueError("no pairs to calibrate by")
    ranked = sorted(same)
    return ranked[int((1 - share) * len(ranked))] - 0.005
