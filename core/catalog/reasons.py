"""Why an executor is refused: the closed list, and the refusal that carries one of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from core.errors import CatalogError, SignatureRefused


class Reason(StrEnum):
    """Each has the text `reject.<reason>` in every language."""

    MISSING_SIGNATURE = "missing_signature"
    BAD_SIGNATURE = "bad_signature"
    UNKNOWN_KEY = "unknown_key"
    REVOKED_KEY = "revoked_key"
    DIGEST_MISMATCH = "digest_mismatch"
    UNDECLARED_FILE = "undeclared_file"
    MISSING_FILE = "missing_file"
    SYMLINK = "symlink"
    HARDLINK = "hardlink"
    BYTECODE = "bytecode"
    PATH_ESCAPE = "path_escape"
    NAME_MISMATCH = "name_mismatch"
    BAD_NAME = "bad_name"
    CONFUSABLE = "confusable"
    DOWNGRADE = "downgrade"
    BAD_TOML = "bad_toml"
    BAD_MANIFEST = "bad_manifest"
    WRITABLE_BY_OTHERS = "writable_by_others"
    TOO_LARGE = "too_large"
    UNREADABLE = "unreadable"
    SDK_MISSING = "sdk_missing"


@dataclass(frozen=True, slots=True)
class Rejection:
    """One executor that does not run. `reason_code` is a `Reason`; `detail` is English, with the
    file or the number that decided. In a `name` from disk every unusual letter is spelt out
    (`find_f\\u0456les`), so that it can be told from the one it imitates."""

    name: str
    reason_code: str
    detail: str = ""

    @property
    def message_key(self) -> str:
        return f"reject.{self.reason_code}"

    @classmethod
    def of(cls, name: str, exc: CatalogError) -> Rejection:
        return cls(plain_ascii(name), reason_of(exc), exc.detail)


def refused(reason: Reason, detail: str = "") -> SignatureRefused:
    """The exception for a reason; `Rejection.of` reads it back."""
    return SignatureRefused(printable(detail), reason=reason.value)


def reason_of(exc: CatalogError) -> str:
    return str(exc.params.get("reason", Reason.BAD_MANIFEST.value))


def printable(text: str) -> str:
    """The text with what would move a cursor, turn the reading direction or break UTF-8 spelt
    out: file names come from strangers and end up in terminals and logs."""
    return "".join(char if char.isprintable() else plain_ascii(char) for char in text)


def plain_ascii(text: str) -> str:
    return ascii(text)[1:-1]
