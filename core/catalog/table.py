"""The table of executors in the README, made from their manifests.

It stands between two marks and is renewed by `python -m core.catalog.digests`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from core.accounts import HINT
from core.catalog.manifest import MANIFEST_LANGS, Manifest, parse_manifest
from core.catalog.verify import MANIFEST_FILE

README = "README.md"
_BEGIN, _END = "<!-- executors: made by `make digests` -->\n", "<!-- end of executors -->\n"
_BETWEEN = re.compile(f"(?<={re.escape(_BEGIN)}).*?(?={re.escape(_END)})", re.DOTALL)
_NEEDS = {"network:": "network", "llm:": "model", "location:": "position"}


def executor_table(manifests: Sequence[Manifest]) -> str:
    """Markdown: a line for each executor, by name."""
    lines = [f"{len(manifests)} executors.", "", "| Name | Does | Fa | Effect | Needs |"]
    lines.append("|---|---|---|---|---|")
    lines += [_line(manifest) for manifest in sorted(manifests, key=lambda one: one.name)]
    return "\n".join(lines) + "\n"


def refresh_table(root: Path, *, write: bool = True) -> bool:
    """Bring the table of `root/README.md` up to date; whether it was stale. A README without the
    marks, or none, has no table. The same tree always gives the same bytes. Raises `CatalogError`
    for a manifest that does not pass."""
    readme = root / README
    text = readme.read_text("utf-8") if readme.is_file() else ""
    if _BETWEEN.search(text) is None:
        return False
    folders = sorted(path.parent for path in root.glob(f"executors/[!_]*/{MANIFEST_FILE}"))
    table = executor_table(
        [parse_manifest((f / MANIFEST_FILE).read_bytes(), folder=f.name) for f in folders]
    )
    renewed = _BETWEEN.sub(lambda _: table, text, count=1)
    if renewed != text and write:
        readme.write_text(renewed, "utf-8")
    return renewed != text


def _line(manifest: Manifest) -> str:
    effect = manifest.effect + (", undone on request" if manifest.reversible else "")
    english, italian = (_cell(manifest.head(lang)) for lang in reversed(MANIFEST_LANGS))
    return f"| `{manifest.name}` | {english} | {italian} | {effect} | {_needs(manifest)} |"


def _needs(manifest: Manifest) -> str:
    found: dict[str, None] = {}
    for right in manifest.capabilities:
        for hint in right.hints:
            if hint.startswith(HINT):
                kind = hint.removeprefix(HINT)
                optional = " (if there is one)" if kind.endswith("?") else ""
                found[f"{kind.rstrip('?')} account{optional}"] = None
        for prefix, word in _NEEDS.items():
            if right.name.startswith(prefix):
                found[word] = None
    return ", ".join(found)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
