"""Which import names a declared package opens, with all it needs itself, and where they lie.

Reads the metadata of installed distributions; nothing is imported. Environment markers of
requirements (`python_version < "3.12" and extra == "x"`) are respected by a small evaluator,
because `packaging` is no dependency of the product.
"""

from __future__ import annotations

import csv
import os
import platform
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import metadata

_REQUIREMENT = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[([^\]]*)\])?([^;]*)(?:;(.*))?$")
_TOKEN = re.compile(r"""\s*(?:([()])|('[^']*'|"[^"]*")|(===|==|~=|!=|<=|>=|<|>)|([\w.]+))""")
_CODE_ENDINGS = frozenset({"py", "so", "pyd"})


class PackageMissing(LookupError):
    """A declared package is not installed; the text is its name."""


@dataclass(frozen=True, slots=True)
class Packages:
    """`names`: top-level import names. `site_dirs`: the folders they are found in, absolute."""

    names: frozenset[str] = frozenset()
    site_dirs: tuple[str, ...] = ()


@lru_cache(maxsize=256)
def resolve(requires: tuple[str, ...]) -> Packages:
    """The closure of `requires`. Raises `PackageMissing` when one of `requires` is not installed;
    what a dependency asks for and is not there is left out. Cached for the life of the process."""
    names: set[str] = set()
    site_dirs: dict[str, None] = {}
    seen: set[tuple[str, str]] = set()
    waiting = [(text, True, "") for text in requires]
    while waiting:
        text, must, _ = waiting.pop()
        match = _REQUIREMENT.match(text)
        if match is None:
            raise PackageMissing(text)
        name, extras = match[1], [part.strip() for part in (match[2] or "").split(",")]
        try:
            distribution = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            if must:
                raise PackageMissing(name) from None
            continue
        names |= import_names(distribution)
        site_dirs[os.path.realpath(str(distribution.locate_file("")))] = None
        for extra in {"", *extras}:
            key = (_normal(name), _normal(extra))
            if key in seen:
                continue
            seen.add(key)
            for needed in distribution.requires or ():
                parts = _REQUIREMENT.match(needed)
                if parts and marker_holds(parts[4] or "", environment(extra)):
                    waiting.append((needed, False, extra))
    return Packages(frozenset(names - sys.stdlib_module_names), tuple(site_dirs))


def import_names(distribution: metadata.Distribution) -> set[str]:
    """The top-level modules and packages a distribution installs."""
    names: set[str] = set()
    for file in _installed(distribution):
        top = file.partition("/")[0]
        code = file.rpartition(".")[2] in _CODE_ENDINGS
        if code and top != ".." and not top.endswith(".data"):
            names.add(top.partition(".")[0])
    if not names:
        names.update((distribution.read_text("top_level.txt") or "").split())
    return {name for name in names if re.fullmatch(r"\w+", name)}


def _installed(distribution: metadata.Distribution) -> Iterable[str]:
    """The paths of its files. `Distribution.files` makes an object of each, which for a package of
    many small files (`tzdata`) costs the first call as much as a process."""
    record = distribution.read_text("RECORD")
    if record is None:
        return [file.as_posix() for file in distribution.files or ()]
    return [row[0] for row in csv.reader(record.splitlines()) if row]


def environment(extra: str) -> dict[str, str]:
    """The values markers may ask for, of the interpreter that runs (the child's is the same)."""
    version = sys.implementation.version
    return {
        "implementation_name": sys.implementation.name,
        "implementation_version": f"{version.major}.{version.minor}.{version.micro}",
        "os_name": os.name,
        "platform_machine": platform.machine(),
        "platform_python_implementation": platform.python_implementation(),
        "platform_release": platform.release(),
        "platform_system": platform.system(),
        "platform_version": platform.version(),
        "python_full_version": platform.python_version(),
        "python_version": ".".join(platform.python_version_tuple()[:2]),
        "sys_platform": sys.platform,
        "extra": extra,
    }


def marker_holds(marker: str, env: Mapping[str, str]) -> bool:
    """Whether an environment marker is true here. What cannot be read counts as true: the
    dependency is then allowed if it is installed."""
    tokens = [match.group().strip() for match in _TOKEN.finditer(marker)]
    if not tokens:
        return True
    try:
        value, rest = _either(tokens, env)
    except (IndexError, KeyError, ValueError):
        return True
    return value or bool(rest)


def _either(tokens: list[str], env: Mapping[str, str]) -> tuple[bool, list[str]]:
    value, tokens = _both(tokens, env)
    while tokens and tokens[0] == "or":
        right, tokens = _both(tokens[1:], env)
        value = value or right
    return value, tokens


def _both(tokens: list[str], env: Mapping[str, str]) -> tuple[bool, list[str]]:
    value, tokens = _one(tokens, env)
    while tokens and tokens[0] == "and":
        right, tokens = _one(tokens[1:], env)
        value = value and right
    return value, tokens


def _one(tokens: list[str], env: Mapping[str, str]) -> tuple[bool, list[str]]:
    if tokens[0] == "(":
        value, tokens = _either(tokens[1:], env)
        if tokens[0] != ")":
            raise ValueError(tokens[0])
        return value, tokens[1:]
    if tokens[1] == "not":
        tokens = [tokens[0], "not in", *tokens[3:]]
    left, operator, right = tokens[:3]
    if "extra" in (left, right):
        sides = (_normal(_value(left, env)), _normal(_value(right, env)))
        return _compare(sides[0], operator, sides[1], versions=False), tokens[3:]
    versions = any("version" in side for side in (left, right) if not _quoted(side))
    sides = (_value(left, env), _value(right, env))
    return _compare(sides[0], operator, sides[1], versions=versions), tokens[3:]


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _quoted(token: str) -> bool:
    return token[:1] in {"'", '"'}


def _value(token: str, env: Mapping[str, str]) -> str:
    return token[1:-1] if _quoted(token) else env[token]


def _compare(left: str, operator: str, right: str, *, versions: bool) -> bool:
    if operator in {"in", "not in"}:
        return (left in right) is (operator == "in")
    a: object = _version(left) if versions else left
    b: object = _version(right) if versions else right
    if operator in {"==", "==="}:
        return left.startswith(right[:-1]) if right.endswith(".*") else a == b
    if operator == "!=":
        return not left.startswith(right[:-1]) if right.endswith(".*") else a != b
    if operator == "~=":
        return _version(left) >= _version(right) and left.startswith(right.rpartition(".")[0])
    if not versions:
        raise ValueError(operator)
    less, same = _version(left) < _version(right), a == b
    return {"<": less, "<=": less or same, ">": not less and not same, ">=": not less}[operator]


def _version(text: str) -> tuple[int, ...]:
    numbers = [int(part) for part in re.findall(r"\d+", text)]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)
