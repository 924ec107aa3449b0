"""The signed catalogue: read and verified from disk, and looked at again when nothing changed."""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from core.catalog.loader import CatalogLoader
from core.config import Settings
from tests.bench.figures import clocked, spread, times
from tests.bench.prefilter import synthetic_catalog
from tests.support.executors import home_settings, install_unit, signed_home, tree_unit

_COUNT = 100
_MODEL = "find_files"
# A file that has just changed is read again at the next check; see `CatalogLoader`.
_SETTLE_S = 0.1


def run(argv: Sequence[str] = ()) -> dict[str, Any]:
    """Milliseconds with a hundred executors (each as large as a shipped one), and the shipped."""
    count = times(_COUNT, least=12)
    with tempfile.TemporaryDirectory(prefix="metnos-bench-") as folder:
        many = home_settings(Path(folder) / "many")
        _fill(many, count)
        shipped = signed_home(Path(folder) / "shipped")
        time.sleep(_SETTLE_S)
        return {
            str(count): _timed(many, cold=200, hot=1),
            "shipped": _timed(shipped),
        }


def _fill(settings: Settings, count: int) -> None:
    unit = tree_unit(_MODEL)
    install_unit(settings, "_sdk", tree_unit("_sdk"))
    for item in synthetic_catalog(count):
        manifest = re.sub(
            rb'^name = "\w+"', b'name = "%s"' % item.name.encode(), unit["manifest.toml"],
            count=1, flags=re.MULTILINE,
        )  # fmt: skip
        install_unit(settings, item.name, {**unit, "manifest.toml": manifest})


def _timed(
    settings: Settings, *, cold: float | None = None, hot: float | None = None
) -> dict[str, Any]:
    CatalogLoader.of(settings).current()
    loading = clocked(lambda: CatalogLoader.of(settings).current(), times(10))
    loader = CatalogLoader.of(settings)
    catalog = loader.current()
    checking = clocked(loader.current, times(200))
    return {
        "executors": len(catalog.executors),
        "rejected": len(catalog.rejected),
        "cold": spread(loading, **_budget(cold)),
        "hot": spread(checking, **_budget(hot)),
    }


def _budget(milliseconds: float | None) -> dict[str, float]:
    return {} if milliseconds is None else {"budget_median_ms": milliseconds}
