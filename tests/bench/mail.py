"""What a huge mailbox costs: the newest twenty unread of fifty thousand messages, over a real
Dovecot, in the cage. The server has its index by then, as one that has been used does.

`child_mb` is the most that a call's own process held in RAM, what it shares with the waiting one
included.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from statistics import median
from typing import Any

from tests.bench.figures import SCALE, times
from tests.bench.peak import Peak
from tests.support.mail_servers import HAS_DOVECOT, NOBODY, USER, MailHost, mail_host
from tests.support.run_executor import TREE, run_executor, shared_cage

_MESSAGES = 50_000
_UNREAD_EVERY = 7
_LINES = "Una riga qualunque di una lettera qualunque, con qualche parola.\n" * 40


def run(argv: Sequence[str] = ()) -> dict[str, Any]:
    """`newest.median_s` and `child_mb`, with their budgets; without Dovecot why not."""
    if not HAS_DOVECOT:
        return {"left_out": "needs Debian's dovecot-imapd, and root"}
    count = max(200, round(_MESSAGES * min(1.0, float(os.environ.get(SCALE) or 1))))
    # As servers of large mailboxes are set: nobody but the server touches its folders.
    with mail_host(settings="maildir_very_dirty_syncs = yes") as host:
        _fill(host, count)
        first, peak = _timed(host), Peak(lambda: shared_cage().zygote_pids)
        with peak:
            spent = [_timed(host) for _ in range(times(9))]
    return {
        "messages": count,
        "first_s": round(first, 3),
        "newest": {"median_s": round(median(spent), 3), "most_s": round(max(spent), 3)},
        "budget_s": 1,
        "child_mb": round(peak.kib / 1024, 1),
        "own_mb": round(peak.own_kib / 1024, 1),
        "budget_mb": 50,
    }


def _timed(host: MailHost) -> float:
    hosts = [f"127.0.0.1:{port}" for port in (host.imap_port, host.smtp_port)]
    start = time.perf_counter()
    seen = run_executor(
        TREE / "read_messages",
        {"unseen_only": True, "max_results": 20},
        accounts=[host.account()],
        account_hosts={"mail": hosts},
        private_hosts=hosts,
    )
    spent = time.perf_counter() - start
    assert seen["ok"], seen
    assert len(seen["entries"]) == 20, "of so many some are unread"
    return spent


def _fill(host: MailHost, count: int) -> None:
    """Messages as Dovecot's own delivery leaves them, with their sizes in their names; quickly."""
    box = host.root / "mail" / USER
    for part in ("", "cur", "new", "tmp"):
        (box / part).mkdir(parents=True, exist_ok=True)
        os.chown(box / part, NOBODY, NOBODY)
    for number in range(count):
        flags = "" if number % _UNREAD_EVERY == 0 else "S"
        raw = (
            f"From: Marta {number} <marta{number % 300}@posta.example>\nTo: {USER}\n"
            f"Subject: Lettera {number}\nMessage-ID: <{number}@posta.example>\n"
            "Date: Wed, 18 Mar 2026 09:00:00 +0100\nContent-Type: text/plain; charset=utf-8\n\n"
            f"{_LINES}"
        ).encode()
        lines = raw.count(b"\n")
        sizes = f"S={len(raw)},W={len(raw) + lines}"
        at = 1_600_000_000 + number
        place = box / "cur" / f"{at}.M{number}P1.host,{sizes}:2,{flags}"
        place.write_bytes(raw)
        os.chown(place, NOBODY, NOBODY)
        os.utime(place, (at, at))
