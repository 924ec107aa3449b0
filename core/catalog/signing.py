"""Ed25519 signatures of manifests. Pure functions on bytes; the only room of `cryptography` here.

What is signed is a context string and the exact bytes of the manifest, so a signature made for
anything else can never pass for one of a manifest.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from core.catalog.reasons import Reason, refused

CONTEXT = b"metnos executor manifest v1\x00"
KEY_BYTES = 32


@dataclass(frozen=True, slots=True)
class Signature:
    key_id: str
    value: bytes


def new_private_key() -> bytes:
    """32 secret random bytes."""
    return Ed25519PrivateKey.generate().private_bytes_raw()


def public_key(private: bytes) -> bytes:
    return Ed25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()


def key_id(public: bytes) -> str:
    """The name of a public key: the first 16 hexadecimal digits of its SHA-256."""
    return hashlib.sha256(public).hexdigest()[:16]


def sign_manifest(private: bytes, manifest: bytes) -> bytes:
    """The bytes of `manifest.sig`. The same key and manifest always give the same bytes."""
    value = Ed25519PrivateKey.from_private_bytes(private).sign(CONTEXT + manifest)
    return _write(Signature(key_id(public_key(private)), value))


def read_signature(data: bytes) -> Signature:
    """Read the bytes of `manifest.sig`. Raises `SignatureRefused` with reason bad_signature.

    There is exactly one way to write a signature: bytes that read the same but are written
    differently are refused, so that no bit of the file is without meaning.
    """
    try:
        document = json.loads(data)
        signature = Signature(document["key_id"], bytes.fromhex(document["signature"]))
    except (ValueError, TypeError, KeyError, RecursionError) as exc:
        raise refused(Reason.BAD_SIGNATURE, "manifest.sig cannot be read") from exc
    if _write(signature) != data or len(signature.value) != 64:
        raise refused(Reason.BAD_SIGNATURE, "manifest.sig is not written as it should")
    return signature


def verify_manifest(public: bytes, manifest: bytes, signature: Signature) -> bool:
    """Whether the holder of `public` signed exactly these bytes as a manifest."""
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature.value, CONTEXT + manifest)
    except (InvalidSignature, ValueError):
        return False
    return True


def _write(signature: Signature) -> bytes:
    document = {"key_id": signature.key_id, "signature": signature.value.hex()}
    return json.dumps(document).encode("ascii") + b"\n"
