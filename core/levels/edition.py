"""Which edition of reading requests this is: what was read by another is read anew. Pure."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path

_HERE = Path(__file__).parent


@lru_cache(maxsize=1)
def words_edition() -> str:
    """Tells editions of the word list, and of the code that reads by it, apart: 8 hexadecimal
    digits, for what is computed by them and stored."""
    digest = hashlib.sha256()
    read_by = [*_HERE.glob("meaning*.py"), _HERE / "amounts.py", _HERE / "tracing.py"]
    for path in sorted([*read_by, *(_HERE / "words").glob("*.t*")]):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()[:8]
