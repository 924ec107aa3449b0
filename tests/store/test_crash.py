"""Processes that end at any moment: what was committed is there, whole, and nothing hangs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

from core.config import Settings
from core.store import inbox, outbox
from core.store.stores import open_stores
from tests.support import processes
from tests.support.clock import FrozenClock

TREE = Path(__file__).parents[2]
KILLS = max(2, int(20 * float(os.environ.get("METNOS_TEST_SCALE") or 0.2)))

WORK = textwrap.dedent(
    """
    import asyncio, sys
    from core.clock import SystemClock
    from core.config import load_settings
    from core.messages import ChatAddress
    from core.store import inbox, outbox
    from core.store.stores import open_stores

    async def main():
        clock = SystemClock()
        stores = await open_stores(load_settings(metnos_home=sys.argv[1]), clock)
        address = ChatAddress("telegram", "1")
        async with stores.main.write() as tx:
            await outbox.recover(tx, "telegram", clock.now())
            n = await inbox.next_offset(tx, "telegram", "1") or 1
        while True:
            async with stores.main.write() as tx:
                row = inbox.InboxRow(n, address.key, {"n": n})
                await inbox.add_batch(
                    tx, [row], channel="telegram", bot_id="1", next_offset=n + 1, now=clock.now()
                )
                await outbox.enqueue(tx, f"{n}:final", address, {"n": n}, clock.now())
            print(n, flush=True)
            async with stores.main.write() as tx:
                item = await outbox.claim_next(tx, "telegram", now=clock.now())
            async with stores.main.write() as tx:
                await outbox.mark_sent(tx, item.key, "1", clock.now())
            n += 1

    asyncio.run(main())
    """
)


def live_and_die(home: Path, *, after_s: float) -> list[int]:
    """Let a writer work and kill it; the updates it said it had committed."""
    process = processes.start(
        [sys.executable, "-c", WORK, str(home)], stdout=subprocess.PIPE, text=True, cwd=TREE
    )
    assert process.stdout is not None
    first = int(process.stdout.readline())
    time.sleep(after_s)
    process.send_signal(signal.SIGKILL)
    rest, _ = process.communicate()
    return [first, *(int(line) for line in rest.splitlines(keepends=True) if line.endswith("\n"))]


async def test_killed_writer_loses_no_committed_update_and_repeats_marked(
    settings: Settings, clock: FrozenClock
):
    told: list[int] = []
    for kill in range(KILLS):
        told += live_and_die(settings.metnos_home, after_s=0.007 * (kill % 10))

    stores = await open_stores(settings, clock)
    async with stores.main.write() as tx:
        await outbox.recover(tx, "telegram", clock.now())
        rows = await inbox.open_rows(tx, "telegram", "1")
        out = await tx.fetch_all("SELECT key, state, place FROM outbox ORDER BY place, key")
        sound = (await tx.fetch_all("PRAGMA integrity_check"))[0][0]
    await stores.close()

    ids = [row.update_id for row in rows]
    print(f"kills: {KILLS}, updates: {len(ids)}, unclear: {len(out) - len(ids)}")
    assert set(told) <= set(ids)
    assert ids == list(range(1, len(ids) + 1))
    assert sound == "ok"
    # each update has its answer: sent, waiting, or unclear and then repeated in its place
    last: dict[str, str] = {}
    for row in out:
        last[row["key"].split(":")[0]] = row["state"]
    assert sorted(last, key=int) == [str(n) for n in ids]
    assert set(last.values()) <= {"sent", "pending"}


def test_process_that_dies_without_closing_does_not_hang(settings: Settings):
    code = (
        "import asyncio, sys\n"
        "from core.clock import SystemClock\n"
        "from core.config import load_settings\n"
        "from core.store.stores import open_stores\n"
        "async def main():\n"
        "    await open_stores(load_settings(metnos_home=sys.argv[1]), SystemClock())\n"
        "    raise SystemExit(3)\n"
        "asyncio.run(main())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(settings.metnos_home)],
        cwd=TREE,
        timeout=120,
        check=False,
        capture_output=True,
    )

    assert done.returncode == 3
