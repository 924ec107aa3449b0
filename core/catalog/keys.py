"""The keys of this installation: the owner's own, the trusted ones, the revoked ones.

    private/keys/owner.key          secret, made by setup, read only to sign
    private/keys/trusted/*.pub      public keys whose signatures count (the owner's is owner.pub)
    private/keys/revoked            key ids, one a line; `#` starts a comment

Keys are written as hexadecimal text. Running executors needs no secret: the loader reads public
keys alone.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from core.catalog.files import Stamp, create_private, stamp_at, write_private
from core.catalog.reasons import Reason, refused
from core.catalog.signing import KEY_BYTES, Signature, key_id, new_private_key, public_key
from core.errors import CatalogError

MAX_KEY_FILE_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class OwnerKey:
    """The key that signs. `secret` is never shown, logged or sent."""

    secret: bytes = field(repr=False)
    public: bytes

    @property
    def key_id(self) -> str:
        return key_id(self.public)


@dataclass(frozen=True, slots=True)
class TrustedKeys:
    """One reading of the ring. `problems` are English sentences for `doctor`."""

    public: Mapping[str, bytes]
    revoked: frozenset[str]
    problems: tuple[str, ...] = ()

    def key_for(self, signature: Signature) -> bytes:
        """The public key a signature names. Raises `SignatureRefused` for unknown and revoked."""
        if signature.key_id in self.revoked:
            raise refused(Reason.REVOKED_KEY, signature.key_id)
        public = self.public.get(signature.key_id)
        if public is None:
            raise refused(Reason.UNKNOWN_KEY, signature.key_id[:32])
        return public


class TrustRing:
    """The trusted keys on disk, read again when their files change."""

    def __init__(self, private_dir: Path) -> None:
        self._trusted = private_dir / "keys" / "trusted"
        self._revoked = private_dir / "keys" / "revoked"

    def stamps(self) -> tuple[tuple[str, Stamp | None], ...]:
        """Paths and stamps that change when the ring does."""
        paths = [str(self._trusted), str(self._revoked), *map(str, self._key_files())]
        return tuple((path, stamp_at(path)) for path in paths)

    def read(self) -> TrustedKeys:
        """The ring as it is now. A key file that cannot be trusted is left out and named; if the
        list of revoked keys cannot be read, no key counts at all."""
        problems: list[str] = []
        public: dict[str, bytes] = {}
        for path in self._key_files():
            try:
                key = _read_key(path)
            except CatalogError as exc:
                problems.append(exc.detail)
            else:
                public[key_id(key)] = key
        try:
            revoked = self._read_revoked(problems)
        except CatalogError as exc:
            return TrustedKeys({}, frozenset(), (*problems, exc.detail))
        return TrustedKeys(public, revoked, tuple(problems))

    def trust(self, public: bytes, *, name: str) -> str:
        """Let signatures of `public` count from now on; returns its key id. Twice: no change."""
        self._trusted.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private(self._trusted / f"{name}.pub", public.hex().encode() + b"\n")
        return key_id(public)

    def revoke(self, revoked_id: str) -> None:
        """Refuse everything this key signed or will sign. Twice: no change."""
        text = _read_text(self._revoked) if self._revoked.exists() else ""
        if revoked_id not in text.split():
            write_private(self._revoked, f"{text}{revoked_id}\n".encode())

    def _key_files(self) -> list[Path]:
        try:
            return sorted(p for p in self._trusted.iterdir() if p.name.endswith(".pub"))
        except OSError:
            return []

    def _read_revoked(self, problems: list[str]) -> frozenset[str]:
        if not os.path.lexists(self._revoked):
            return frozenset()
        lines = (line.partition("#")[0].strip() for line in _read_text(self._revoked).splitlines())
        ids = frozenset(line.casefold() for line in lines if line)
        problems.extend(
            f"{self._revoked.name}: {entry[:40]!r} is no key id"
            for entry in sorted(ids)
            if len(entry) != 16 or not set(entry) <= set("0123456789abcdef")
        )
        return ids


def load_or_create_owner_key(private_dir: Path) -> OwnerKey:
    """The owner's key, made at the first call and trusted from then on.

    Two processes at once get the same key. Raises `CatalogError` when the file is not a key or can
    be read by others: a key that may have leaked signs nothing.
    """
    folder = private_dir / "keys"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / "owner.key"
    if not path.exists():
        create_private(path, new_private_key().hex().encode() + b"\n")
    secret = _read_key(path, secret=True)
    owner = OwnerKey(secret, public_key(secret))
    ring = TrustRing(private_dir)
    # A missing file of a known secret is put back; a revoked owner key stays revoked.
    if owner.key_id not in ring.read().public:
        ring.trust(owner.public, name="owner")
    return owner


def _read_key(path: Path, *, secret: bool = False) -> bytes:
    text = _read_text(path, secret=secret).strip()
    try:
        key = bytes.fromhex(text)
    except ValueError as exc:
        raise CatalogError(f"{path.name} is not a key") from exc
    if len(key) != KEY_BYTES:
        raise CatalogError(f"{path.name} is not a key")
    return key


def _read_text(path: Path, *, secret: bool = False) -> str:
    """A small file that nobody else may write (or, when secret, read)."""
    forbidden = 0o077 if secret else 0o022
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            info = os.fstat(descriptor)
            if not stat.S_ISREG(info.st_mode) or info.st_uid not in {0, os.geteuid()}:
                raise CatalogError(f"{path.name} is not a file of yours")
            if info.st_mode & forbidden:
                raise CatalogError(f"{path.name} is open to others; chmod 600 it")
            return os.read(descriptor, MAX_KEY_FILE_BYTES).decode("ascii")
        finally:
            os.close(descriptor)
    except (OSError, UnicodeDecodeError) as exc:
        raise CatalogError(f"{path.name} cannot be read") from exc
