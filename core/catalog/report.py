"""What `metnos executors verify` and `doctor` tell: every executor of the home, looked at deeply.

Slower than loading on purpose: it reads everything anew and makes the checks of signing too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from core.catalog.keys import TrustRing
from core.catalog.loader import CatalogLoader
from core.catalog.manifest import SDK_NAME, check_manifest, check_python
from core.catalog.reasons import Rejection
from core.catalog.staging import is_staged_current
from core.config import Settings
from core.errors import CatalogError


@dataclass(frozen=True, slots=True)
class VerifiedUnit:
    """One folder of the catalogue. `rejection` None: it runs."""

    name: str
    version: str | None
    rejection: Rejection | None = None

    @property
    def ok(self) -> bool:
        return self.rejection is None


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """`units` by name. `key_problems`: English sentences about key files that do not count.
    `current`: whether the home holds this release."""

    units: tuple[VerifiedUnit, ...]
    key_problems: tuple[str, ...]
    current: bool

    @property
    def ok(self) -> bool:
        return bool(self.units) and all(unit.ok for unit in self.units) and not self.key_problems


def verify_report(settings: Settings) -> VerifyReport:
    """Verify the whole catalogue of a home from its files. Changes nothing but version floors,
    which may rise; raises nothing for a bad executor."""
    catalog = CatalogLoader.of(settings).current()
    units = {r.name: VerifiedUnit(r.name, None, r) for r in catalog.rejected}
    if catalog.sdk.digest:
        units[SDK_NAME] = VerifiedUnit(
            SDK_NAME,
            catalog.sdk.version,
            _refusal(SDK_NAME, lambda: check_python(catalog.sdk.files)),
        )
    for name, executor in catalog.executors.items():
        rejection = _refusal(name, partial(check_manifest, executor.manifest, executor.files))
        units[name] = VerifiedUnit(name, executor.manifest.version, rejection)
    return VerifyReport(
        tuple(units[name] for name in sorted(units)),
        TrustRing(settings.metnos_home / "private").read().problems,
        is_staged_current(settings),
    )


def _refusal(name: str, check: Callable[[], object]) -> Rejection | None:
    try:
        check()
    except CatalogError as exc:
        return Rejection.of(name, exc)
    return None
