"""Whether the bytes of one folder are an executor that may run. Pure: bytes in, manifest out.

The order matters: nothing of a manifest is believed before its signature is right.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import TypeVar

from core.catalog.manifest import Manifest, SdkManifest, parse_manifest, parse_sdk_manifest
from core.catalog.reasons import Reason, refused
from core.catalog.signing import Signature, read_signature, verify_manifest
from core.errors import ManifestInvalid, SignatureRefused

MANIFEST_FILE = "manifest.toml"
SIGNATURE_FILE = "manifest.sig"
M = TypeVar("M", Manifest, SdkManifest)
# The public key that a signature names; raises `SignatureRefused` when it does not count.
KeyFor = Callable[[Signature], bytes]


def verify_executor(name: str, files: Mapping[str, bytes], key_for: KeyFor) -> Manifest:
    """The manifest of a whole and rightly signed executor; `files` are all bytes of its folder.

    Raises `SignatureRefused` or `ManifestInvalid` with a reason.
    """
    return _verify(files, key_for, lambda data: parse_manifest(data, folder=name))


def verify_sdk(files: Mapping[str, bytes], key_for: KeyFor) -> SdkManifest:
    """As `verify_executor`, for `_sdk`."""
    return _verify(files, key_for, parse_sdk_manifest)


def code_of(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """The bytes that run: everything but the manifest and its signature."""
    return {p: data for p, data in files.items() if p not in {MANIFEST_FILE, SIGNATURE_FILE}}


def check_digests(declared: Mapping[str, str], code: Mapping[str, bytes]) -> None:
    """Refuse a tree that is not exactly the declared one."""
    if extra := code.keys() - declared.keys():
        raise refused(Reason.UNDECLARED_FILE, min(extra))
    if missing := declared.keys() - code.keys():
        raise refused(Reason.MISSING_FILE, min(missing))
    for path, data in code.items():
        if hashlib.sha256(data).hexdigest() != declared[path]:
            raise refused(Reason.DIGEST_MISMATCH, path)


def _verify(files: Mapping[str, bytes], key_for: KeyFor, parse: Callable[[bytes], M]) -> M:
    data = files.get(MANIFEST_FILE)
    if data is None:
        raise refused(Reason.MISSING_FILE, MANIFEST_FILE)
    signed = files.get(SIGNATURE_FILE)
    if signed is None:
        raise refused(Reason.MISSING_SIGNATURE)
    signature = read_signature(signed)
    if not verify_manifest(key_for(signature), data, signature):
        raise _unsigned(data, parse)
    manifest = parse(data)
    check_digests(manifest.files, code_of(files))
    return manifest


def _unsigned(data: bytes, parse: Callable[[bytes], M]) -> ManifestInvalid | SignatureRefused:
    """The refusal for a manifest that nobody signed as it is. When it is not even TOML, say that:
    it is what whoever edited it needs to know."""
    try:
        parse(data)
    except ManifestInvalid as exc:
        if exc.params.get("reason") == Reason.BAD_TOML:
            return exc
    return refused(Reason.BAD_SIGNATURE, "the manifest is not the one that was signed")
