"""The manifest of an executor: what it says about itself, checked and made into a value.

`parse_manifest` is quick, because the catalogue parses a hundred of them at start: it checks
names, types and limits and that every text is there in every language. `check_manifest` is
thorough (JSON Schema metaschema, the code's syntax and entry points) and runs only when something
is signed or verified. Pure: bytes in, values out. Knows no disk, no keys and no signatures.
`tests/support/example_manifest.toml` shows every field with its meaning.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
import tomllib
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from core.catalog.manifest_fields import (
    read_affinity,
    read_aliases,
    read_answers,
    read_args,
    read_birth_test,
    read_capabilities,
    read_files,
    read_languages,
    read_limits,
    read_output,
)
from core.catalog.manifest_types import (
    MANIFEST_LANGS,
    Answer,
    BirthTest,
    Capability,
    Effect,
    Limits,
    Manifest,
    SdkManifest,
)
from core.catalog.toml_table import TomlTable, invalid
from core.catalog.tool_schema import in_language
from core.vocabulary import is_executor_name, is_read_only

__all__ = [
    "FORMAT",
    "MANIFEST_LANGS",
    "SDK_FORMAT",
    "SDK_NAME",
    "Answer",
    "BirthTest",
    "Capability",
    "Effect",
    "Limits",
    "Manifest",
    "SdkManifest",
    "check_manifest",
    "check_python",
    "parse_manifest",
    "parse_sdk_manifest",
    "version_key",
]

FORMAT = "metnos.executor/1"
SDK_FORMAT = "metnos.sdk/1"
SDK_NAME = "_sdk"
MAX_MANIFEST_BYTES = 64 * 1024

RENDERS = frozenset({"text", "list", "number", "file_effect"})
LIFECYCLES = frozenset({"active", "candidate", "deprecated", "archived"})
PROVENANCES = frozenset({"own", "external"})

_VERSION = re.compile(r"(0|[1-9]\d{0,5})\.(0|[1-9]\d{0,5})\.(0|[1-9]\d{0,5})", re.ASCII)
# What was made is taken back by a tool that deletes it by the ids that the run returned.
BY_ID = "delete_by_id"
PUT_BACK = "put_back_by_id"
_WORD = re.compile(r"[a-z][a-z0-9_]{0,63}", re.ASCII)
_PACKAGE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,62}[A-Za-z0-9])?", re.ASCII)


@lru_cache(maxsize=256)
def parse_manifest(data: bytes, *, folder: str) -> Manifest:
    """Read the manifest of the executor in `folder`. The same bytes give the same object.

    Raises `ManifestInvalid` whose detail is one English sentence for whoever writes executors and
    whose `params["reason"]` is bad_toml, bad_manifest, name_mismatch, bad_name or path_escape.
    """
    table = TomlTable(_toml(data), "manifest")
    name = table.text("name")
    if name != folder:
        raise invalid(f"name is {name!r} but the folder is {folder!r}", "name_mismatch")
    if not is_executor_name(name):
        raise invalid(f"{name!r} is not in the vocabulary", "bad_name")
    effect = table.choice("effect", frozenset(Effect))
    manifest = Manifest(
        format=table.choice("format", frozenset({FORMAT})),
        name=name,
        version=table.matching("version", _VERSION),
        author=table.text("author", most=100),
        sdk=table.text("sdk", "1"),
        lifecycle=table.choice("lifecycle", LIFECYCLES, "active"),
        description=read_languages(table.table("description"), most=240),
        phrase=read_languages(table.table("phrase"), most=80),
        affinity=read_affinity(table.table("affinity")),
        answer=read_answers(table.table("answer")),
        args=read_args(table.take("args", dict)),
        aliases=read_aliases(table.table("aliases", {})),
        output=read_output(table.table("output")),
        capabilities=read_capabilities(table.tables("capabilities")),
        effect=Effect(effect),
        reversible=table.take("reversible", bool, False),
        undo=table.matching("undo", _WORD) if table.has("undo") else None,
        undo_tool=table.matching("undo_tool", _WORD) if table.has("undo_tool") else None,
        vector=table.words("vector"),
        timeout_s=table.number("timeout_s", 30, low=1, high=600),
        limits=read_limits(table.table("limits", {})),
        parallel_safe=table.take("parallel_safe", bool, False),
        companions=table.words("companions"),
        producer_for=table.words("producer_for"),
        tests=tuple(read_birth_test(test) for test in table.tables("tests", [])),
        files=read_files(table.take("files", dict)),
        requires=table.words("requires", _PACKAGE),
        provenance=table.choice("provenance", PROVENANCES, "own"),
        render=table.choice("render", RENDERS),
        digest=hashlib.sha256(data).hexdigest(),
    )
    table.end()
    _check_agreement(manifest)
    return manifest


def parse_sdk_manifest(data: bytes) -> SdkManifest:
    """Read `executors/_sdk/manifest.toml`. Raises `ManifestInvalid` like `parse_manifest`."""
    table = TomlTable(_toml(data), "manifest of _sdk")
    table.choice("format", frozenset({SDK_FORMAT}))
    if table.text("name") != SDK_NAME:
        raise invalid("the name is not _sdk", "name_mismatch")
    version = table.matching("version", _VERSION)
    files = read_files(table.take("files", dict), main=False)
    table.end()
    return SdkManifest(version, files, hashlib.sha256(data).hexdigest())


def version_key(version: str) -> tuple[int, ...]:
    """For comparing versions: `1.10.0` is above `1.9.2`."""
    return tuple(int(part) for part in version.split("."))


def check_manifest(manifest: Manifest, files: Mapping[str, bytes]) -> None:
    """Everything that is too slow for every start. Raises `ManifestInvalid`.

    `files` are the executor's bytes without the manifest. Checks that the argument schema is
    valid JSON Schema without references and JSON through and through, that effect and verb agree,
    that there is a birth test, that every Python file parses and that `main.py` defines `run`,
    and `preview` when it changes something.
    """
    from jsonschema import Draft202012Validator, SchemaError

    try:
        text = json.dumps(manifest.args, allow_nan=False)
    except (TypeError, ValueError) as exc:
        raise invalid(f"[args] is not JSON: {exc}") from exc
    if '"$' in text:
        raise invalid("[args] uses a $ keyword: schemas are written out, without references")
    try:
        Draft202012Validator.check_schema(in_language(manifest.args, "en"))
    except SchemaError as exc:
        raise invalid(f"[args] is not JSON Schema: {exc.message}") from exc
    if manifest.is_mutating and is_read_only(manifest.name):
        raise invalid(f"effect is {manifest.effect.value} but the verb promises to change nothing")
    if not manifest.tests:
        raise invalid("there is no birth test")
    trees = check_python(files)
    if "main.py" in trees:
        _check_entry_points(manifest, trees["main.py"])


def check_python(files: Mapping[str, bytes]) -> dict[str, ast.Module]:
    """Parse every Python file. Raises `ManifestInvalid` for the first that does not parse."""
    trees = {}
    for path, data in files.items():
        if path.endswith(".py"):
            try:
                trees[path] = ast.parse(data, filename=path)
            except (SyntaxError, ValueError, RecursionError) as exc:
                raise invalid(f"{path} is not valid Python: {exc}") from exc
    return trees


def _check_entry_points(manifest: Manifest, tree: ast.Module) -> None:
    defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    for function in ("run", "preview") if manifest.is_mutating else ("run",):
        if function not in defined:
            raise invalid(f"main.py does not define {function}(call)")


def _toml(data: bytes) -> dict[str, Any]:
    if len(data) > MAX_MANIFEST_BYTES:
        raise invalid(f"the manifest is larger than {MAX_MANIFEST_BYTES} bytes", "too_large")
    try:
        return tomllib.loads(data.decode("utf-8"))
    # Deeply nested arrays exhaust the parser's stack: a refusal like any other.
    except (ValueError, RecursionError) as exc:
        raise invalid(f"the manifest is not valid TOML: {exc}"[:300], "bad_toml") from exc


def _check_agreement(manifest: Manifest) -> None:
    """Fields that speak of one another must agree."""
    for name in manifest.vector:
        if name not in manifest.properties:
            raise invalid(f"vector names {name!r}, which is no argument")
    for alias, names in manifest.aliases.items():
        if alias in manifest.properties or not manifest.properties.keys() >= set(names):
            raise invalid(f"[aliases] {alias} must be another name for arguments that there are")
    for capability in manifest.capabilities:
        for hint in capability.hints:
            if hint.startswith("arg:") and hint[4:] not in manifest.properties:
                raise invalid(f"the hint {hint!r} names what is no argument")
    if manifest.reversible != (manifest.undo is not None):
        raise invalid("reversible and undo go together: both or neither")
    if (manifest.undo in {BY_ID, PUT_BACK}) != (manifest.undo_tool is not None):
        raise invalid(
            f"undo_tool names the tool that deletes what undo {BY_ID!r} made, or puts back what"
            f" undo {PUT_BACK!r} changed"
        )
    if manifest.reversible and not manifest.is_mutating:
        raise invalid("a pure executor has nothing to undo")
