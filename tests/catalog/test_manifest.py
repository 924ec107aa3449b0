"""Reading manifests: the example is right, and each way of being wrong is refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.catalog.manifest import (
    Effect,
    check_manifest,
    parse_manifest,
    parse_sdk_manifest,
    version_key,
)
from core.errors import ManifestInvalid
from tests.support.executors import MUTATING_CODE, PURE_CODE, manifest_toml

EXAMPLE = (Path(__file__).parents[1] / "support" / "example_manifest.toml").read_bytes()
DIGEST = "e" * 64


def small(**changes: str) -> str:
    text = manifest_toml("find_files", args=changes.pop("args", ""))
    text += f'"main.py" = "{DIGEST}"\n'
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    return text


def changed(old: str, new: str, **values: str) -> bytes:
    text = small(**values)
    assert old in text
    return text.replace(old, new, 1).encode()


def test_parse_manifest_when_complete_reads_every_field():
    manifest = parse_manifest(EXAMPLE, folder="move_files")

    assert manifest.version == "1.0.0"
    assert manifest.effect is Effect.CHECKABLE
    assert manifest.is_mutating
    assert manifest.undo == "move_back"
    assert manifest.sinks == {"paths": "path", "dst": "path"}
    assert manifest.types["overwrite"] == "free"
    assert manifest.requires_one_of == (("paths",), ("entries",))
    assert manifest.takes_entries
    assert manifest.answer["en"].one.startswith("I moved")
    assert manifest.capabilities[1].name == "fs:write"
    assert manifest.limits.memory_mb == 256
    assert manifest.tests[0].expect["files"] == {"box/a.txt": "uno", "a.txt": False}
    assert manifest.output["entries"]["bytes"] == "size"


def test_example_manifest_passes_the_thorough_check():
    manifest = parse_manifest(EXAMPLE, folder="move_files")

    check_manifest(manifest, {"main.py": MUTATING_CODE.encode()})


def test_parse_manifest_when_small_fills_in_what_is_usual():
    manifest = parse_manifest(small().encode(), folder="find_files")

    assert (manifest.sdk, manifest.lifecycle, manifest.provenance) == ("1", "active", "own")
    assert manifest.reversible is False
    assert manifest.vector == ()
    assert manifest.answer["it"].many == ""


ARG = """
[args.properties.base_path]
type = "string"
description = { it = "cartella", en = "folder" }
x-metnos-type = "path"
x-metnos-sink = "path"
"""


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('name = "find_files"', 'name = "read_files"', "name_mismatch"),
        ('version = "1.0.0"', 'version = "1.0"', "bad_manifest"),
        ('version = "1.0.0"', 'version = "1.0.0\\n"', "bad_manifest"),
        ('version = "1.0.0"', "version = 1", "bad_manifest"),
        ('version = "1.0.0"', 'version = "١.0.0"', "bad_manifest"),
        ('format = "metnos.executor/1"', 'format = "metnos.executor/2"', "bad_manifest"),
        ('effect = "pure"', 'effect = "harmless"', "bad_manifest"),
        ('effect = "pure"', "", "bad_manifest"),
        ("timeout_s = 10", "timeout_s = 0", "bad_manifest"),
        ("timeout_s = 10", "timeout_s = nan", "bad_manifest"),
        ("timeout_s = 10", "timeout_s = true", "bad_manifest"),
        ("timeout_s = 10", "timeout_s = 10\nsurprise = 1", "bad_manifest"),
        ('render = "list"', 'render = "song"', "bad_manifest"),
        ('render = "list"', 'render = "list"\nvector = ["ghost"]', "bad_manifest"),
        ('render = "list"', 'render = "list"\nreversible = true', "bad_manifest"),
        ('render = "list"', 'render = "list"\nundo = "swap"', "bad_manifest"),
        ('en = "A trial."', "", "bad_manifest"),
        ('en = "A trial."', f'en = "{"x" * 241}"', "bad_manifest"),
        ('en = "A trial."', 'en = "A \\u202etrial."', "bad_manifest"),
        ('en = "A trial."', 'en = "A trial."\nfr = "Un essai."', "bad_manifest"),
        ('it = ["prova"]', "it = [1]", "bad_manifest"),
        ('one = "Fatto."', 'zero = "Niente."', "bad_manifest"),
        ("additionalProperties = false", "", "bad_manifest"),
        ("additionalProperties = false", "additionalProperties = true", "bad_manifest"),
        ('name = "compute:pure"', 'name = "do:anything"', "bad_manifest"),
        ('name = "compute:pure"', 'name = "fs:read"\nhints = ["arg:ghost"]', "bad_manifest"),
        ("expect = { ok = true }", "expect = { luck = true }", "bad_manifest"),
        (f'"main.py" = "{DIGEST}"', "", "bad_manifest"),
        (f'"main.py" = "{DIGEST}"', '"main.py" = "short"', "bad_manifest"),
        (f'"main.py" = "{DIGEST}"', f'"../main.py" = "{DIGEST}"', "path_escape"),
        (f'"main.py" = "{DIGEST}"', f'"/main.py" = "{DIGEST}"', "path_escape"),
        (f'"main.py" = "{DIGEST}"', f'"a\\\\b.py" = "{DIGEST}"', "path_escape"),
        (f'"main.py" = "{DIGEST}"', f'"a//b.py" = "{DIGEST}"', "path_escape"),
        (f'"main.py" = "{DIGEST}"', f'".hidden" = "{DIGEST}"', "path_escape"),
        (f'"main.py" = "{DIGEST}"', f'"main.py" = "{DIGEST}"\n"m.pyc" = "{DIGEST}"', "bytecode"),
        (f'"main.py" = "{DIGEST}"', f'"manifest.sig" = "{DIGEST}"', "bad_manifest"),
        ("[files]", "[files", "bad_toml"),
        ("[files]", '[files]\n"main.py" = 1\n"main.py" = 2', "bad_toml"),
        ("[files]", "x = " + "[" * 5000 + "\n[files]", "bad_toml"),
        ("[files]", "# " + "x" * 70_000 + "\n[files]", "too_large"),
    ],
)
def test_parse_manifest_when_wrong_refuses_with_reason(old: str, new: str, reason: str):
    with pytest.raises(ManifestInvalid) as refusal:
        parse_manifest(changed(old, new), folder="find_files")

    assert refusal.value.params["reason"] == reason
    assert refusal.value.detail


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('x-metnos-type = "path"', 'x-metnos-type = "thing"'),
        ('x-metnos-type = "path"', ""),
        ('x-metnos-sink = "path"', 'x-metnos-sink = "drain"'),
        ('type = "string"\n', ""),
        ('en = "folder"', 'de = "Ordner"'),
        ("[args.properties.base_path]", "[args.properties.from_step]"),
        ("[args.properties.base_path]", "[args.properties.other_step]"),
        ("[args.properties.base_path]", '[args.properties."a b"]'),
        ("additionalProperties = false", 'additionalProperties = false\nrequired = ["ghost"]'),
        (
            "additionalProperties = false",
            'additionalProperties = false\nrequires_one_of = [["ghost"]]',
        ),
    ],
)
def test_parse_manifest_when_an_argument_is_wrong_refuses(old: str, new: str):
    with pytest.raises(ManifestInvalid):
        parse_manifest(changed(old, new, args=ARG), folder="find_files")


def test_parse_manifest_when_bytes_are_not_utf8_is_bad_toml():
    with pytest.raises(ManifestInvalid) as refusal:
        parse_manifest(b'name = "\xff"', folder="find_files")

    assert refusal.value.params["reason"] == "bad_toml"


@pytest.mark.parametrize(
    ("manifest", "files", "part"),
    [
        (small(), {"main.py": b"def walk(call): ...\n"}, "does not define run"),
        (small(), {"main.py": b"def run(call:\n"}, "not valid Python"),
        (small(), {"main.py": PURE_CODE.encode(), "other.py": b"\x00"}, "not valid Python"),
        (
            small(args=ARG.replace('type = "string"', 'type = "word"')),
            {"main.py": PURE_CODE.encode()},
            "not JSON Schema",
        ),
        (
            small(args=ARG + 'items = { "$ref" = "https://schema.example/x" }\n'),
            {"main.py": PURE_CODE.encode()},
            "$ keyword",
        ),
        (small(args=ARG + "default = 2026-01-01\n"), {"main.py": PURE_CODE.encode()}, "not JSON"),
        (
            small().replace('effect = "pure"', 'effect = "blind"'),
            {"main.py": MUTATING_CODE.encode()},
            "verb",
        ),
    ],
)
def test_check_manifest_when_deeply_wrong_refuses(
    manifest: str, files: dict[str, bytes], part: str
):
    parsed = parse_manifest(manifest.encode(), folder="find_files")

    with pytest.raises(ManifestInvalid) as refusal:
        check_manifest(parsed, files)

    assert part in refusal.value.detail


def test_check_manifest_when_mutating_without_preview_refuses():
    text = manifest_toml("move_files", effect="checkable") + f'"main.py" = "{DIGEST}"\n'
    parsed = parse_manifest(text.encode(), folder="move_files")

    with pytest.raises(ManifestInvalid) as refusal:
        check_manifest(parsed, {"main.py": PURE_CODE.encode()})

    assert "preview" in refusal.value.detail


def test_parse_sdk_manifest_names_its_generation():
    text = (
        f'format = "metnos.sdk/1"\nname = "_sdk"\nversion = "2.3.1"\n[files]\n"a.py" = "{DIGEST}"'
    )

    assert parse_sdk_manifest(text.encode()).generation == "2"


def test_version_key_orders_by_number():
    assert version_key("1.10.0") > version_key("1.9.9")
