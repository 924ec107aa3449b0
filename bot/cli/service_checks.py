"""What `metnos doctor` asks of the services that the owner chose: places, weather, the web.

The real programs run in the real cage. The public services that are asked by default are left in
peace: who they are is said, and a request says what became of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from bot.cli.account_checks import why
from bot.cli.checks import SERVICES, Doctor, Finding

if TYPE_CHECKING:
    from core.errors import ErrorInfo


async def check_services(doctor: Doctor) -> AsyncIterator[Finding]:
    """A finding for every service whose address the owner set."""
    from core.config import PUBLIC_SERVICES

    urls = doctor.settings.services
    own = [name for name in SERVICES.values() if urls[name] and urls[name] not in PUBLIC_SERVICES]
    if not own or not (doctor.home / "executors").is_dir():
        return
    found = await _asked(doctor, own)
    for check, name in SERVICES.items():
        if name not in found:
            continue
        error, url = found[name], urls[name]
        named = {"host": urlsplit(url).netloc}
        if error is None:
            yield doctor.good(check, f"{check}_answers", **named)
        else:
            mend = f"curl -sS {urlsplit(url)._replace(path='', query='').geturl()}"
            said = why(doctor.console, error)
            yield doctor.fault(check, f"{check}_silent", mend, why=said, **named)


async def _asked(doctor: Doctor, names: list[str]) -> dict[str, ErrorInfo | None]:
    """What became of one question to each, all at once; nothing when the database cannot be
    opened, which has its own finding."""
    from core.catalog.loader import CatalogLoader
    from core.clock import SystemClock
    from core.egress.broker import Broker
    from core.errors import StoreError
    from core.execution.account_check import AccountCheck
    from core.execution.cage.process import ProcessCage
    from core.messages import Actor, Role
    from core.store import actors
    from core.store.stores import open_stores

    settings, clock, lang = doctor.settings, SystemClock(), doctor.console.lang
    try:
        stores = await open_stores(settings, clock)
    except StoreError:
        return {}
    cage = ProcessCage(unsafe=settings.metnos_unsafe_no_cage, broker=Broker())
    try:
        async with stores.main.read() as tx:
            host = await actors.find_host(tx)
        # Before anybody was made host the questions are the same.
        asker = host or Actor("nobody", Role.HOST, "")
        catalog = CatalogLoader.of(settings).current()
        check = AccountCheck(cage, stores, settings)
        now = clock.now()
        errors = await asyncio.gather(
            *(check.check_service(name, asker, catalog, lang=lang, now=now) for name in names)
        )
        return dict(zip(names, errors, strict=True))
    finally:
        cage.close()
        await stores.close()
