"""Every way we know to tamper with an executor: all refused, each for its reason, alone (S2)."""

from __future__ import annotations

import os
import random
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from core.catalog.files import write_private
from core.catalog.keys import TrustRing, load_or_create_owner_key
from core.catalog.loader import CatalogLoader
from core.catalog.release import with_files
from core.catalog.signing import key_id, new_private_key, public_key, sign_manifest
from core.catalog.verify import verify_executor
from core.config import Settings
from core.errors import CatalogError
from tests.support.executors import PURE_CODE

Tamper = Callable[[Path, Settings], None]
CASES: list[tuple[str, str, Tamper]] = []


def case(reason: str) -> Callable[[Tamper], Tamper]:
    def keep(tamper: Tamper) -> Tamper:
        CASES.append((tamper.__name__, reason, tamper))
        return tamper

    return keep


def owner_secret(settings: Settings) -> bytes:
    return load_or_create_owner_key(settings.metnos_home / "private").secret


def resign(folder: Path, settings: Settings, manifest: bytes, secret: bytes | None = None) -> None:
    """Write a manifest with a signature that is right for it."""
    (folder / "manifest.toml").write_bytes(manifest)
    signature = sign_manifest(secret or owner_secret(settings), manifest)
    (folder / "manifest.sig").write_bytes(signature)


def edit_signed(folder: Path, settings: Settings, old: str, new: str) -> None:
    text = (folder / "manifest.toml").read_text(encoding="utf-8")
    assert old in text
    resign(folder, settings, text.replace(old, new, 1).encode())


@case("digest_mismatch")
def code_edited(folder: Path, settings: Settings) -> None:
    with (folder / "main.py").open("a", encoding="utf-8") as file:
        file.write("# more\n")


@case("digest_mismatch")
def code_emptied(folder: Path, settings: Settings) -> None:
    (folder / "main.py").write_bytes(b"")


@case("digest_mismatch")
def code_edited_with_its_times_set_back(folder: Path, settings: Settings) -> None:
    path = folder / "main.py"
    before = path.stat()
    data = path.read_bytes()
    path.write_bytes(data.replace(b"True", b"Fals"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@case("digest_mismatch")
def two_files_swapped(folder: Path, settings: Settings) -> None:
    one, two = folder / "main.py", folder / "data" / "words.txt"
    first, second = one.read_bytes(), two.read_bytes()
    one.write_bytes(second)
    two.write_bytes(first)


@case("digest_mismatch")
def line_ends_changed(folder: Path, settings: Settings) -> None:
    path = folder / "main.py"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))


@case("missing_file")
def code_removed(folder: Path, settings: Settings) -> None:
    (folder / "main.py").unlink()


@case("missing_file")
def data_removed(folder: Path, settings: Settings) -> None:
    shutil.rmtree(folder / "data")


@case("missing_file")
def manifest_removed(folder: Path, settings: Settings) -> None:
    (folder / "manifest.toml").unlink()


@case("missing_file")
def folder_emptied(folder: Path, settings: Settings) -> None:
    shutil.rmtree(folder)
    folder.mkdir(mode=0o700)


@case("missing_signature")
def signature_removed(folder: Path, settings: Settings) -> None:
    (folder / "manifest.sig").unlink()


@case("bad_signature")
def signature_emptied(folder: Path, settings: Settings) -> None:
    (folder / "manifest.sig").write_bytes(b"")


@case("bad_signature")
def signature_of_zeros(folder: Path, settings: Settings) -> None:
    key = load_or_create_owner_key(settings.metnos_home / "private").key_id
    (folder / "manifest.sig").write_text(
        f'{{"key_id": "{key}", "signature": "{"0" * 128}"}}\n', encoding="utf-8"
    )


@case("bad_signature")
def signature_with_a_space_more(folder: Path, settings: Settings) -> None:
    path = folder / "manifest.sig"
    path.write_bytes(path.read_bytes().replace(b": ", b":  ", 1))


@case("bad_signature")
def signature_in_capitals(folder: Path, settings: Settings) -> None:
    path = folder / "manifest.sig"
    head, _, value = path.read_bytes().partition(b'"signature": ')
    path.write_bytes(head + b'"signature": ' + value.upper())


@case("bad_signature")
def signature_with_a_doubled_key(folder: Path, settings: Settings) -> None:
    path = folder / "manifest.sig"
    path.write_bytes(path.read_bytes().replace(b"{", b'{"key_id": "0000000000000000", ', 1))


@case("bad_signature")
def signature_of_another_executor(folder: Path, settings: Settings) -> None:
    shutil.copy(folder.parent / "get_now" / "manifest.sig", folder / "manifest.sig")


@case("bad_signature")
def signature_without_the_context(folder: Path, settings: Settings) -> None:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    secret = owner_secret(settings)
    value = Ed25519PrivateKey.from_private_bytes(secret).sign(
        (folder / "manifest.toml").read_bytes()
    )
    key = key_id(public_key(secret))
    (folder / "manifest.sig").write_text(
        f'{{"key_id": "{key}", "signature": "{value.hex()}"}}\n', encoding="utf-8"
    )


@case("bad_signature")
def manifest_asking_for_more(folder: Path, settings: Settings) -> None:
    path = folder / "manifest.toml"
    path.write_bytes(path.read_bytes().replace(b"compute:pure", b"code:exec"))


@case("bad_signature")
def manifest_with_a_space_more(folder: Path, settings: Settings) -> None:
    path = folder / "manifest.toml"
    path.write_bytes(path.read_bytes() + b" ")


@case("bad_signature")
def manifest_and_code_edited_together(folder: Path, settings: Settings) -> None:
    code = {"main.py": b"def run(call): return {'ok': True, 'content': 'owned'}\n"}
    (folder / "main.py").write_bytes(code["main.py"])
    path = folder / "manifest.toml"
    path.write_bytes(with_files(path.read_bytes(), code))


@case("bad_signature")
def claims_the_owners_key_with_another_key(folder: Path, settings: Settings) -> None:
    manifest = (folder / "manifest.toml").read_bytes()
    other = new_private_key()
    forged = sign_manifest(other, manifest).replace(
        key_id(public_key(other)).encode(), key_id(public_key(owner_secret(settings))).encode()
    )
    (folder / "manifest.sig").write_bytes(forged)


@case("unknown_key")
def signed_by_a_stranger(folder: Path, settings: Settings) -> None:
    resign(folder, settings, (folder / "manifest.toml").read_bytes(), new_private_key())


@case("revoked_key")
def signed_by_a_revoked_friend(folder: Path, settings: Settings) -> None:
    friend = new_private_key()
    ring = TrustRing(settings.metnos_home / "private")
    ring.revoke(ring.trust(public_key(friend), name="friend"))
    resign(folder, settings, (folder / "manifest.toml").read_bytes(), friend)


@case("undeclared_file")
def file_added(folder: Path, settings: Settings) -> None:
    (folder / "json.py").write_text("raise SystemExit\n", encoding="utf-8")


@case("undeclared_file")
def hidden_file_added(folder: Path, settings: Settings) -> None:
    (folder / ".env").write_text("X=1\n", encoding="utf-8")


@case("undeclared_file")
def file_added_in_a_subfolder(folder: Path, settings: Settings) -> None:
    (folder / "data" / "more.txt").write_text("tre\n", encoding="utf-8")


@case("undeclared_file")
def empty_folder_added(folder: Path, settings: Settings) -> None:
    (folder / "empty").mkdir()


@case("undeclared_file")
def fifo_added(folder: Path, settings: Settings) -> None:
    os.mkfifo(folder / "pipe", 0o600)


@case("undeclared_file")
def socket_added(folder: Path, settings: Settings) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        before = Path.cwd()
        os.chdir(folder)  # the path of a socket must be short
        try:
            listener.bind("s")
        finally:
            os.chdir(before)


@case("symlink")
def code_replaced_by_a_symlink(folder: Path, settings: Settings) -> None:
    aside = settings.metnos_home / "main.py"
    (folder / "main.py").rename(aside)
    (folder / "main.py").symlink_to(aside)


@case("symlink")
def folder_replaced_by_a_symlink(folder: Path, settings: Settings) -> None:
    aside = settings.metnos_home / "aside"
    folder.rename(aside)
    folder.symlink_to(aside)


@case("symlink")
def dangling_symlink_added(folder: Path, settings: Settings) -> None:
    (folder / "ghost").symlink_to("/nowhere")


@case("hardlink")
def code_hard_linked(folder: Path, settings: Settings) -> None:
    os.link(folder / "main.py", settings.metnos_home / "twin.py")


@case("bytecode")
def pycache_added(folder: Path, settings: Settings) -> None:
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "main.cpython-311.pyc").write_bytes(b"x")


@case("bytecode")
def pyc_added(folder: Path, settings: Settings) -> None:
    (folder / "main.PYC").write_bytes(b"x")


@case("bytecode")
def pth_added(folder: Path, settings: Settings) -> None:
    (folder / "site.pth").write_text("import os\n", encoding="utf-8")


@case("writable_by_others")
def code_writable_by_everyone(folder: Path, settings: Settings) -> None:
    (folder / "main.py").chmod(0o666)


@case("writable_by_others")
def folder_writable_by_the_group(folder: Path, settings: Settings) -> None:
    folder.chmod(0o770)


@case("too_large")
def many_files_added(folder: Path, settings: Settings) -> None:
    for number in range(70):
        (folder / f"f{number}.txt").write_text("x", encoding="utf-8")


@case("too_large")
def huge_file_added(folder: Path, settings: Settings) -> None:
    with (folder / "big.bin").open("wb") as file:
        file.truncate(1 << 34)


@case("too_large")
def folders_nested_deep(folder: Path, settings: Settings) -> None:
    deep = folder.joinpath(*"abcdefgh")
    deep.mkdir(parents=True)
    (deep / "x.txt").write_text("x", encoding="utf-8")


@case("bad_toml")
def manifest_broken(folder: Path, settings: Settings) -> None:
    path = folder / "manifest.toml"
    path.write_bytes(path.read_bytes().replace(b"[files]", b"[files"))


@case("bad_toml")
def manifest_broken_and_signed(folder: Path, settings: Settings) -> None:
    resign(folder, settings, b"= = =")


@case("bad_toml")
def manifest_that_exhausts_the_parser(folder: Path, settings: Settings) -> None:
    resign(folder, settings, b"x = " + b"[" * 50_000)


@case("bad_manifest")
def manifest_incomplete_and_signed(folder: Path, settings: Settings) -> None:
    edit_signed(folder, settings, 'effect = "pure"', "")


@case("path_escape")
def path_that_leaves_the_folder(folder: Path, settings: Settings) -> None:
    edit_signed(folder, settings, '"main.py"', '"../get_now/main.py"')


@case("path_escape")
def absolute_path(folder: Path, settings: Settings) -> None:
    edit_signed(folder, settings, '"main.py"', '"/etc/passwd"')


@case("name_mismatch")
def another_executor_under_this_name(folder: Path, settings: Settings) -> None:
    shutil.rmtree(folder)
    shutil.copytree(folder.parent / "get_now", folder)


@case("downgrade")
def older_version_rightly_signed(folder: Path, settings: Settings) -> None:
    edit_signed(folder, settings, 'version = "1.2.0"', 'version = "1.1.9"')


@case("sdk_missing")
def made_for_another_sdk(folder: Path, settings: Settings) -> None:
    edit_signed(folder, settings, 'sdk = "1"', 'sdk = "2"')


@pytest.mark.parametrize(("reason", "tamper"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_tampered_executor_is_refused_for_its_reason_and_alone(
    home: Settings, loader: CatalogLoader, folder: Path, reason: str, tamper: Tamper
):
    good = loader.current()
    assert set(good.executors) == {"find_files", "get_now"}

    tamper(folder, home)

    for catalog in (loader.current(), CatalogLoader.of(home).current()):
        assert set(catalog.executors) == {"get_now"}
        assert [(r.name, r.reason_code) for r in catalog.rejected] == [("find_files", reason)]
    # What was handed out before still holds what was verified.
    assert good.executors["find_files"].files["main.py"] == PURE_CODE.encode()


def test_tampering_covers_the_bar():
    print(f"\nkinds of tampering: {len(CASES)}")
    assert len(CASES) >= 25


@pytest.mark.parametrize(
    ("check", "without", "tamper"),
    [
        ("core.catalog.verify.verify_manifest", lambda *_: True, manifest_asking_for_more),
        ("core.catalog.verify.verify_manifest", lambda *_: True, signature_without_the_context),
        ("core.catalog.verify.check_digests", lambda *_: None, code_edited),
        ("core.catalog.verify.check_digests", lambda *_: None, file_added),
        ("core.catalog.files.check_owner", lambda *_: None, code_writable_by_everyone),
        ("core.catalog.files.MAX_FILES", 10_000, many_files_added),
        ("core.catalog.files._COMPILED", ("~",), pth_added),
        ("core.catalog.loader.is_below", lambda *_: False, older_version_rightly_signed),
    ],
)
def test_tampering_bites_only_because_of_its_check(
    home: Settings,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    check: str,
    without: object,
    tamper: Tamper,
):
    """Counter-proof: with the check taken away the same tampering passes."""
    undeclared = {many_files_added, pth_added}
    tamper(folder, home)
    monkeypatch.setattr(check, without)
    if tamper in undeclared:
        monkeypatch.setattr("core.catalog.verify.check_digests", lambda *_: None)

    assert "find_files" in CatalogLoader.of(home).current().executors


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("find_fіles", "confusable"),
        ("Find_Files", "confusable"),
        ("final_answer", "bad_name"),
        ("get_files_csv", "name_mismatch"),
        ("dance_files", "bad_name"),
    ],
)
def test_copy_under_another_name_is_refused(
    home: Settings, loader: CatalogLoader, folder: Path, name: str, reason: str
):
    shutil.copytree(folder, folder.parent / name)

    catalog = loader.current()

    assert set(catalog.executors) == {"find_files", "get_now"}
    assert [(r.name, r.reason_code) for r in catalog.rejected] == [(ascii(name)[1:-1], reason)]


def test_refusal_of_a_hostile_file_name_is_harmless_to_print(loader: CatalogLoader, folder: Path):
    (folder / os.fsdecode(b"\x1b[2J\xff\xe2\x80\xae.txt")).write_bytes(b"")
    shutil.copytree(folder.parent / "get_now", folder.with_name("find_\x1b]0;x\x07"))

    file, name = sorted(loader.current().rejected, key=lambda r: r.reason_code, reverse=True)

    assert (file.reason_code, name.reason_code) == ("undeclared_file", "bad_name")
    assert file.detail.isprintable()
    assert name.name.isprintable()


def test_every_bit_of_manifest_and_signature_counts(home: Settings, folder: Path):
    """500 single-bit flips, and every bit of the signature file."""
    keys = TrustRing(home.metnos_home / "private").read()
    files = {
        "main.py": (folder / "main.py").read_bytes(),
        "data/words.txt": (folder / "data" / "words.txt").read_bytes(),
        "manifest.toml": (folder / "manifest.toml").read_bytes(),
        "manifest.sig": (folder / "manifest.sig").read_bytes(),
    }
    assert verify_executor("find_files", files, keys.key_for).name == "find_files"
    seed = random.SystemRandom().getrandbits(32)
    print(f"\nseed {seed}")
    bits = [("manifest.toml", n) for n in range(len(files["manifest.toml"]) * 8)]
    flips = random.Random(seed).sample(bits, 500)
    flips += [("manifest.sig", n) for n in range(len(files["manifest.sig"]) * 8)]

    accepted = []
    for name, bit in flips:
        data = bytearray(files[name])
        data[bit // 8] ^= 1 << (bit % 8)
        try:
            verify_executor("find_files", {**files, name: bytes(data)}, keys.key_for)
        except CatalogError:
            continue
        accepted.append((name, bit))

    assert accepted == []


def test_swap_after_verification_hands_out_the_verified_bytes(
    home: Settings, loader: CatalogLoader, folder: Path
):
    """200 swaps: what the catalogue holds is never what was put there afterwards."""
    held = loader.current().executors["find_files"]
    evil = b"def run(call): return {'ok': True, 'content': 'owned'}\n"

    for _ in range(200):
        write_private(folder / "main.py", evil)
        assert held.files["main.py"] == PURE_CODE.encode()
        assert "find_files" not in loader.current().executors
        write_private(folder / "main.py", PURE_CODE.encode())
        assert loader.current().executors["find_files"].files["main.py"] == PURE_CODE.encode()


def test_tampered_sdk_takes_every_executor_with_it(home: Settings, loader: CatalogLoader):
    """Executors must not run on code that nobody signed."""
    sdk = home.metnos_home / "executors" / "_sdk"
    with (sdk / "call.py").open("a", encoding="utf-8") as file:
        file.write("\n")

    catalog = loader.current()

    assert dict(catalog.executors) == {}
    assert {(r.name, r.reason_code) for r in catalog.rejected} == {
        ("_sdk", "digest_mismatch"),
        ("find_files", "sdk_missing"),
        ("get_now", "sdk_missing"),
    }
    assert catalog.sdk.files == {}


def test_executors_folder_that_others_may_write_is_refused_whole(
    home: Settings, loader: CatalogLoader
):
    (home.metnos_home / "executors").chmod(0o777)

    catalog = loader.current()

    assert dict(catalog.executors) == {}
    assert {r.reason_code for r in catalog.rejected} == {"writable_by_others"}


def test_manifest_of_a_friend_counts_until_the_key_is_revoked(
    home: Settings, loader: CatalogLoader, folder: Path
):
    friend = new_private_key()
    ring = TrustRing(home.metnos_home / "private")
    key = ring.trust(public_key(friend), name="friend")
    resign(folder, home, (folder / "manifest.toml").read_bytes(), friend)
    assert "find_files" in loader.current().executors

    ring.revoke(key)

    assert [r.reason_code for r in loader.current().rejected] == ["revoked_key"]
