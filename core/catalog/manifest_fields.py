"""The parts of a manifest, one reader each: from a TOML table to a value, or a refusal.

Pure. The tables of allowed words live here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from core.catalog.manifest_types import MANIFEST_LANGS, Answer, BirthTest, Capability, Limits
from core.catalog.toml_table import TomlTable, invalid

_ARG_TYPES = "path url datetime window duration size number person place span label secret free"
_CAPABILITIES = """
fs:read fs:write network:http compute:pure metnos:read metnos:write mail:read mail:send mail:write
channel:out time:read system:read system:admin index:read code:exec llm:local llm:online
calendar:read calendar:write contacts:read contacts:write location:read
"""
SINKS = frozenset({"path", "url", "recipient", "command"})
ARG_TYPES = frozenset(_ARG_TYPES.split())
OUTPUT_TYPES = ARG_TYPES | {"text", "list", "blob", "flag"}
CAPABILITIES = frozenset(_CAPABILITIES.split())
# What a birth test may expect of the observation and of the folder afterwards.
EXPECTATIONS = frozenset({"ok", "count", "entries", "content", "metadata", "error", "files"})

# Written by models in place of the lists of earlier steps.
_PIPES = frozenset({"from_step", "other_step"})
_SHA256 = re.compile(r"[0-9a-f]{64}", re.ASCII)
_WORD = re.compile(r"[a-z][a-z0-9_]{0,63}", re.ASCII)
_SEGMENT = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}"
_FILE = re.compile(rf"{_SEGMENT}(/{_SEGMENT}){{0,3}}", re.ASCII)
# Code that runs by being found, not by being listed and read.
_RUNS_UNSEEN = (".pyc", ".pyo", ".pyd", ".pth", ".so")


def read_languages(table: TomlTable, *, most: int) -> dict[str, str]:
    texts = {lang: table.text(lang, most=most) for lang in MANIFEST_LANGS}
    table.end()
    return texts


def read_affinity(table: TomlTable) -> dict[str, tuple[str, ...]]:
    words = {lang: table.texts(lang) for lang in MANIFEST_LANGS}
    table.end()
    return words


def read_aliases(table: TomlTable) -> dict[str, tuple[str, ...]]:
    """Another name → the arguments that it stands for, at least one."""
    names = table.keys()
    aliases = {name: table.words(name) for name in names}
    table.end()
    for name, arguments in aliases.items():
        if not _WORD.fullmatch(name) or name == "from_step" or not arguments:
            raise invalid(f"[aliases] {name[:80]!r} stands for nothing")
    return aliases


def read_answers(table: TomlTable) -> dict[str, Answer]:
    answers = {}
    for lang in MANIFEST_LANGS:
        forms = table.table(lang)
        answers[lang] = Answer(
            zero=forms.text("zero", "", most=600, least=0),
            one=forms.text("one", most=600),
            many=forms.text("many", "", most=600, least=0),
        )
        forms.end()
    table.end()
    return answers


def read_output(table: TomlTable) -> dict[str, dict[str, str]]:
    output = {}
    for part in ("entries", "content", "metadata"):
        fields = table.table(part, {})
        names = fields.keys()
        if names:
            output[part] = {field: fields.choice(field, OUTPUT_TYPES) for field in names}
    table.end()
    return output


def read_capabilities(tables: list[TomlTable]) -> tuple[Capability, ...]:
    capabilities = []
    for table in tables:
        name = table.choice("name", CAPABILITIES)
        hints = table.texts("hints", most=200) if table.has("hints") else ()
        table.end()
        capabilities.append(Capability(name, hints))
    if not capabilities:
        raise invalid("there is no [[capabilities]]; say compute:pure when it needs nothing")
    return tuple(capabilities)


def read_limits(table: TomlTable) -> Limits:
    usual = Limits()
    limits = Limits(
        memory_mb=table.whole("memory_mb", usual.memory_mb, low=32, high=4096),
        cpu_s=table.whole("cpu_s", usual.cpu_s, low=1, high=600),
        output_bytes=table.whole("output_bytes", usual.output_bytes, low=1024, high=64 << 20),
        file_mb=table.whole("file_mb", usual.file_mb, low=0, high=4096),
    )
    table.end()
    return limits


def read_birth_test(table: TomlTable) -> BirthTest:
    test = BirthTest(
        name=table.text("name", most=120),
        args=table.take("args", dict, {}),
        setup=table.take("setup", dict, {}),
        expect=table.take("expect", dict),
        now=table.text("now") if table.has("now") else None,
        tz=table.text("tz") if table.has("tz") else None,
        lang=table.choice("lang", MANIFEST_LANGS, "it"),
    )
    table.end()
    unknown = set(test.expect) - EXPECTATIONS
    if unknown:
        raise invalid(f"[[tests]] {test.name}: unknown expectation {min(unknown)!r}")
    return test


def read_files(files: Mapping[str, Any], *, main: bool = True) -> dict[str, str]:
    """Path → SHA-256, with nothing that could leave the folder or hide in it."""
    for path, digest in files.items():
        if not _FILE.fullmatch(path) or ".." in path:
            raise invalid(
                f"[files] {path[:80]!r} is not a plain path in the folder", "path_escape"
            )
        if path.casefold().endswith(_RUNS_UNSEEN):
            raise invalid(f"[files] {path} is compiled code", "bytecode")
        if path.casefold() in {"manifest.toml", "manifest.sig"}:
            raise invalid(f"[files] cannot list {path}")
        if type(digest) is not str or not _SHA256.fullmatch(digest):
            raise invalid(f"[files] {path} has no SHA-256")
    if main and "main.py" not in files:
        raise invalid("[files] does not list main.py")
    return dict(files)


def read_args(args: Mapping[str, Any]) -> Mapping[str, Any]:
    if args.get("type") != "object" or args.get("additionalProperties") is not False:
        raise invalid('[args] needs type = "object" and additionalProperties = false')
    properties = args.get("properties", {})
    if type(properties) is not dict:
        raise invalid("[args.properties] must be a table")
    for name, spec in properties.items():
        if not _WORD.fullmatch(name) or name in _PIPES or type(spec) is not dict:
            raise invalid(f"[args.properties.{name}] has a name or form that does not fit")
        if spec.get("x-metnos-type") not in ARG_TYPES:
            raise invalid(f"[args.properties.{name}] x-metnos-type must be one of the known types")
        if "x-metnos-sink" in spec and spec["x-metnos-sink"] not in SINKS:
            raise invalid(f"[args.properties.{name}] x-metnos-sink is not known")
        secret = spec["x-metnos-type"] == "secret"
        if secret and (spec.get("type") != "string" or "x-metnos-sink" in spec):
            raise invalid(f"[args.properties.{name}] a secret is a string and no sink")
        if not spec.keys() & {"type", "enum", "anyOf"}:
            raise invalid(f"[args.properties.{name}] has no type")
        texts = TomlTable(spec, f"[args.properties.{name}]").table("description")
        read_languages(texts, most=200)
    groups = [args.get("required", []), *args.get("requires_one_of", [])]
    for group in groups:
        if type(group) is not list or any(name not in properties for name in group):
            raise invalid("[args] required or requires_one_of names what is no argument")
    return args
