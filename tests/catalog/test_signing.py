"""Signatures and the owner's key."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from core.catalog.keys import TrustRing, load_or_create_owner_key
from core.catalog.signing import (
    key_id,
    new_private_key,
    public_key,
    read_signature,
    sign_manifest,
    verify_manifest,
)
from core.errors import CatalogError, SignatureRefused


def test_sign_manifest_when_repeated_gives_the_same_bytes():
    secret = new_private_key()

    assert sign_manifest(secret, b"x") == sign_manifest(secret, b"x")


def test_verify_manifest_accepts_only_the_signed_bytes_and_key():
    secret = new_private_key()
    signature = read_signature(sign_manifest(secret, b"manifest"))

    assert signature.key_id == key_id(public_key(secret))
    assert verify_manifest(public_key(secret), b"manifest", signature)
    assert not verify_manifest(public_key(secret), b"manifest ", signature)
    assert not verify_manifest(public_key(new_private_key()), b"manifest", signature)
    assert not verify_manifest(b"short", b"manifest", signature)


@pytest.mark.parametrize(
    "data",
    [b"", b"{}", b"[]", b"null", b"\xff", b'{"key_id": 1, "signature": 2}', b"[" * 100_000],
)
def test_read_signature_when_it_is_none_refuses(data: bytes):
    with pytest.raises(SignatureRefused) as refusal:
        read_signature(data)

    assert refusal.value.params["reason"] == "bad_signature"


def test_owner_key_is_made_once_and_is_private(tmp_path: Path):
    first = load_or_create_owner_key(tmp_path / "private")
    second = load_or_create_owner_key(tmp_path / "private")

    assert first == second
    path = tmp_path / "private" / "keys" / "owner.key"
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert first.secret.hex() not in repr(first)
    assert first.key_id in TrustRing(tmp_path / "private").read().public


def test_owner_key_when_made_by_many_at_once_is_one(tmp_path: Path):
    with ThreadPoolExecutor(8) as pool:
        keys = list(pool.map(load_or_create_owner_key, [tmp_path / "private"] * 8))

    assert len(set(keys)) == 1


@pytest.mark.parametrize("mode", [0o644, 0o660])
def test_owner_key_when_others_can_read_it_is_refused(tmp_path: Path, mode: int):
    load_or_create_owner_key(tmp_path)
    (tmp_path / "keys" / "owner.key").chmod(mode)

    with pytest.raises(CatalogError) as refusal:
        load_or_create_owner_key(tmp_path)

    assert "owner.key" in refusal.value.detail


@pytest.mark.parametrize("text", ["", "xyz", "00" * 31])
def test_owner_key_when_it_is_no_key_is_refused_without_its_text(tmp_path: Path, text: str):
    load_or_create_owner_key(tmp_path)
    (tmp_path / "keys" / "owner.key").write_text(text, encoding="ascii")

    with pytest.raises(CatalogError) as refusal:
        load_or_create_owner_key(tmp_path)

    assert not text or text not in str(refusal.value)


def test_owner_key_when_it_is_a_symlink_is_refused(tmp_path: Path):
    load_or_create_owner_key(tmp_path)
    path = tmp_path / "keys" / "owner.key"
    path.rename(tmp_path / "elsewhere")
    Path(path).symlink_to(tmp_path / "elsewhere")

    with pytest.raises(CatalogError):
        load_or_create_owner_key(tmp_path)
