"""An invented past of a household: requests, questions, changes and plans of a month or of years,
written into a home as the engine leaves them. Nobody in it exists.
"""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from core.levels.reuse import Lesson
from core.plan import Plan, Step
from core.store import plan_cache
from core.store.stores import Stores

GUESTS = (("guest-marta", "Marta"), ("guest-leo", "Leo"))

_Asked = tuple[str, str, str, dict[str, Any], tuple[str, ...]]
# Request, answer, tool, arguments, places that are changed.
_ASKED: tuple[_Asked, ...] = (
    ("che ore sono?", "Sono le 10:42 di lunedì 30 novembre.", "get_now", {}, ()),
    (
        "trova i PDF di questa settimana",
        "Ho trovato 12 PDF modificati da lunedì.",
        "find_files",
        {"paths": ["~/Documenti"], "pattern": "*.pdf", "modified_after": "2026-11-23"},
        (),
    ),
    (
        "leggi le note della riunione di martedì",
        "La riunione è stata spostata a giovedì alle 15:00.",
        "read_files",
        {"paths": ["~/Note/riunione.md"]},
        (),
    ),
    (
        "what does the page of the library say about opening hours?",
        "The library is open from 9:00 to 18:30, closed on Sundays.",
        "read_urls_html",
        {"urls": ["https://biblioteca.example/orari"]},
        (),
    ),
    (
        "scrivi la lista della spesa in Note/spesa.md",
        "Scritto.",
        "write_files",
        {"path": "~/Note/spesa.md", "content": "pane, latte, uova"},
        ("~/Note/spesa.md",),
    ),
    (
        "sposta le fatture di ottobre in Archivio",
        "Ho spostato 3 file in Archivio.",
        "move_files",
        {"paths": ["~/Documenti/fattura-01.pdf"], "to": "~/Archivio"},
        ("~/Documenti/fattura-01.pdf", "~/Documenti/fattura-02.pdf", "~/Documenti/fattura-03.pdf"),
    ),
    (
        "elimina i file temporanei da Scaricati",
        "Ho eliminato 34 file da Scaricati.",
        "delete_files",
        {"paths": ["~/Scaricati"]},
        tuple(f"~/Scaricati/tmp-{n:02}.part" for n in range(12)),
    ),
    (
        "quanti giorni mancano a Natale?",
        "Mancano 25 giorni.",
        "get_now",
        {},
        (),
    ),
)


_IN_ENGLISH = {
    "che ore sono?": ("what time is it?", "It is 10:42 on Monday, November 30."),
    "trova i PDF di questa settimana": (
        "find the PDFs of this week",
        "I found 12 PDFs changed since Monday.",
    ),
    "leggi le note della riunione di martedì": (
        "read the notes of Tuesday's meeting",
        "The meeting was moved to Thursday at 15:00.",
    ),
    "scrivi la lista della spesa in Note/spesa.md": (
        "write the shopping list to Notes/shopping.md",
        "Written.",
    ),
    "sposta le fatture di ottobre in Archivio": (
        "move October's invoices to Archive",
        "I moved 3 files to Archive.",
    ),
    "elimina i file temporanei da Scaricati": (
        "delete the temporary files in Downloads",
        "I deleted 34 files from Downloads.",
    ),
    "quanti giorni mancano a Natale?": ("how many days to Christmas?", "25 days."),
}
_OUT_OF_SCOPE = {"it": "Non posso usare quella cartella.", "en": "I cannot use that folder."}


@dataclass(frozen=True, slots=True)
class Past:
    """What was written: the newest turn and the one before it, which both wait; one with two
    segments (and when it asked), one that failed."""

    newest: str
    waiting: str
    resumed: str
    failed: str
    asked_at: datetime


async def invent(
    home: Path,
    stores: Stores,
    host_id: str,
    *,
    turns: int,
    days: int,
    now: datetime,
    lang: str = "it",
) -> Past:
    """Fill a home with `turns` over so many days until now, said in a language. Call it once."""
    asked = [
        (*_IN_ENGLISH.get(one[0], one[:2]), *one[2:]) if lang == "en" else one for one in _ASKED
    ]
    path = home / "private" / "metnos.db"
    connection = sqlite3.connect(path, timeout=30)
    try:
        with connection:
            _people(connection, now - timedelta(days=days))
            past = _turns(
                connection, home / "turns", host_id, turns, days, now, asked, _OUT_OF_SCOPE[lang]
            )
            _questions(connection, host_id, past, now)
    finally:
        connection.close()
    await _plans(stores, host_id, now, asked)
    return past


def _people(connection: sqlite3.Connection, since: datetime) -> None:
    for id, name in GUESTS:
        connection.execute(
            "INSERT INTO actors (id, role, display_name, lang, tz, created_at)"
            " VALUES (?, 'guest', ?, 'it', 'Europe/Rome', ?)",
            (id, name, since.timestamp()),
        )
        connection.execute("INSERT INTO identities VALUES ('telegram', ?, ?)", (f"7{id[-3:]}", id))
    connection.execute(
        "INSERT INTO grants (actor_id, kind, target, granted_at) VALUES (?, 'read', ?, ?)",
        (GUESTS[0][0], "/srv/foto", since.timestamp()),
    )
    connection.execute(
        "INSERT INTO visitors (channel, sender_id, name, asked_at) VALUES ('telegram', '4', ?, ?)",
        ("Una vicina", datetime.now(UTC).timestamp()),
    )


def _turns(
    connection: sqlite3.Connection,
    logs: Path,
    host_id: str,
    count: int,
    days: int,
    now: datetime,
    requests: Sequence[_Asked],
    refusal: str,
) -> Past:
    dice = random.Random(20261130)
    people = [host_id, host_id, host_id, *(id for id, _ in GUESTS)]
    used: dict[tuple[str, str], list[float]] = {}
    open_files: dict[str, Any] = {}
    newest = waiting = resumed = failed = ""
    asked_at = now
    rows, changes = [], []
    for number in range(count):
        began = now - timedelta(days=days) * (1 - (number + 1) / (count + 1))
        learnt = min(0.85, 0.1 + 0.9 * number / count)
        actor = dice.choice(people)
        asked = dice.choice(requests)
        id = f"{dice.getrandbits(128):032x}"
        source = dice.choices(
            ("fastpath", "autopath", "engine"), (learnt * 0.8, learnt * 0.2, 1 - learnt)
        )[0]
        waits = number >= count - 2
        source = "engine" if waits else source
        fails = source == "engine" and "paths" in asked[3] and dice.random() < 0.1
        kind = "awaiting" if waits else "error" if fails else "answer"
        is_long = source == "engine" and bool(asked[4]) and dice.random() < 0.5
        seconds = {"fastpath": 0.012, "autopath": 0.02, "engine": 3.2}[source]
        seconds *= dice.lognormvariate(0, 0.4)
        lines = list(
            _lines(dice, id, actor, asked, source, kind, began, seconds, is_long, refusal)
        )
        read = sum(line["tokens_in"] for line in lines)
        written = sum(line["tokens_out"] for line in lines)
        newest, waiting = id, newest
        if is_long and kind == "answer":
            resumed, asked_at = id, began + timedelta(seconds=seconds)
        failed = id if kind == "error" else failed
        ended = lines[-1]["ts_end"]
        rows.append(
            (
                id,
                f"past:{id}",
                actor,
                "telegram:-5:" if dice.random() < 0.1 else f"telegram:{actor[-3:]}:",
                asked[0],
                lines[-1]["final_message"],
                kind,
                began.timestamp(),
                ended,
                len(lines),
                began.date().isoformat(),
                source,
                read + written,
                round(sum(x["ts_end"] - x["ts_start"] for x in lines) * 1000, 3),
            )
        )
        if asked[4] and kind == "answer":
            changes.append(_change(dice, id, asked, ended))
        sums = used.setdefault((actor, began.date().isoformat()), [0.0] * 6)
        spent = (read, written, read * 0.6, 0.0, 1, source != "engine")
        for index, value in enumerate(spent):
            sums[index] += value
        for line in lines:
            day = began.date().isoformat()
            if day not in open_files:
                open_files[day] = (logs / f"{day}.jsonl").open("a", encoding="utf-8")
            open_files[day].write(json.dumps(line, ensure_ascii=False) + "\n")
    for file in open_files.values():
        file.close()
    connection.executemany(
        "INSERT INTO turns (id, inbound_id, actor_id, conversation, lang, request, answer, state,"
        " final_kind, started_at, ended_at, segment, logged, log_day, source, tokens, busy_ms)"
        " VALUES (?, ?, ?, ?, 'it', ?, ?, 'closed', ?, ?, ?, ?, 1, ?, ?, ?, ?)",
        rows,
    )
    connection.execute(
        "UPDATE turns SET state = 'suspended', final_kind = NULL, ended_at = NULL, answer = NULL"
        " WHERE id IN (?, ?)",
        (newest, waiting),
    )
    connection.executemany(
        "INSERT INTO effects (key, turn_id, step, tool, state, before_json, expected_json,"
        " summary_json, started_at, ended_at) VALUES (?, ?, 1, ?, ?, ?, ?, ?, ?, ?)",
        changes,
    )
    connection.executemany(
        "INSERT INTO usage (actor_id, day, tokens_in, tokens_out, cached, money, turns,"
        " from_memory) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [(*key, *map(int, sums)) for key, sums in used.items()],
    )
    return Past(newest, waiting, resumed or newest, failed or newest, asked_at)


def _lines(
    dice: random.Random,
    id: str,
    actor: str,
    asked: _Asked,
    source: str,
    kind: str,
    began: datetime,
    seconds: float,
    is_long: bool,
    refusal: str,
) -> Iterator[dict[str, Any]]:
    """The line of each segment: of two when it was asked about first."""
    request, answer, tool, args, places = asked
    start = began.timestamp()
    parts = ("awaiting", kind) if is_long and kind == "answer" else (kind,)
    for number, end in enumerate(parts, start=1):
        by_model = source == "engine" and number == 1
        read, written = (dice.randint(1600, 2400), dice.randint(30, 120)) if by_model else (0, 0)
        ok = end == "answer"
        consent = "given" if is_long else "not_needed"
        step = {
            "number": 1,
            "tool": tool,
            "raw_args": args,
            "resolved_args": args,
            "tokens_in": read,
            "tokens_out": written,
            "tokens_cached": int(read * 0.6),
            "model_ms": seconds * 900 if by_model else 0,
            "validation": "ok",
            "scope": "denied" if end == "error" else "ok",
            "grounding": "ok",
            "guard": None if end == "error" else "ok",
            "judge": None if end == "error" else "ok",
            "consent": consent if places else None,
            "ok": ok,
            "error_class": "out_of_scope" if end == "error" else None,
            "error_detail": "/srv/altro is outside the open folders" if end == "error" else None,
            "effects": "done" if ok and places else "none",
            "latency_ms": 4.2,
        }
        yield {
            "turn_id": id,
            "segment": number,
            "ts_start": start,
            "ts_end": start + seconds,
            "actor": actor,
            "channel": "telegram",
            "lang": "it",
            "user_query": request,
            "engine": "simple" if source == "engine" else source,
            "match_source": source if number == 1 else "dialog",
            "candidates": [tool],
            "steps": [] if end == "awaiting" else [step],
            "effect_counts": {},
            "unbacked_claims": 0,
            "final_message": answer if ok else refusal,
            "final_kind": end,
            "error_class": step["error_class"] if end == "error" else None,
            "error_detail": None,
            "model": "qwen3-4b" if by_model else None,
            "model_calls": int(by_model),
            "model_ms": seconds * 900 if by_model else 0,
            "tokens_in": read,
            "tokens_out": written,
            "tokens_cached": int(read * 0.6),
            "cost": 0.0,
        }
        start += seconds + 40


def _change(
    dice: random.Random,
    id: str,
    asked: _Asked,
    ended: float,
) -> tuple[Any, ...]:
    state = dice.choices(("done", "failed", "unknown"), (96, 2, 2))[0]
    undo = [
        {"do": "restore", "from": f"~/.metnos-trash/{id[:6]}/{number}", "to": place}
        for number, place in enumerate(asked[4])
    ]
    return (
        f"{id}:1",
        id,
        asked[2],
        state,
        json.dumps({"found": []}),
        json.dumps({"wanted": [], "undo": undo}),
        json.dumps({"targets": asked[4], "count": len(asked[4])}),
        ended - 0.01,
        ended,
    )


def _questions(connection: sqlite3.Connection, host_id: str, past: Past, now: datetime) -> None:
    answered = round((now - past.asked_at).total_seconds() / 60, 4)
    rows = (
        ("approval", "open", host_id, past.newest, 2, 8, None),
        ("inputs", "open", GUESTS[0][0], past.waiting, 5, 5, None),
        ("approval", "done", host_id, past.resumed, answered, 10 - answered, 0.5 - answered),
        ("location", "expired", GUESTS[1][0], past.failed, 300, -295, -295),
        ("disambiguation", "cancelled", host_id, past.failed, 900, -890, -896),
    )
    fields = json.dumps([{"var": name, "prompt": "?", "kind": "text"} for name in ("a", "b")])
    for number, (kind, state, actor, turn, asked, expires, settled) in enumerate(rows):
        connection.execute(
            "INSERT INTO suspensions (id, kind, state, turn_id, actor_id, conversation,"
            " fields_json, cursor, values_json, data_json, created_at, expires_at, settled_at)"
            " VALUES (?, ?, ?, ?, ?, 'telegram:7:', ?, ?, ?, '{}', ?, ?, ?)",
            (
                f"past{number}",
                kind,
                state,
                turn,
                actor,
                fields if kind == "inputs" else "[]",
                int(kind == "inputs"),
                json.dumps({"a": "S3CR3T-ANSWER"}) if kind == "inputs" else "{}",
                (now - timedelta(minutes=asked)).timestamp(),
                (now + timedelta(minutes=expires)).timestamp(),
                None if settled is None else (now + timedelta(minutes=settled)).timestamp(),
            ),
        )


async def _plans(stores: Stores, host_id: str, now: datetime, requests: Sequence[_Asked]) -> None:
    async with stores.memory.write() as tx:
        for number, (request, _, tool, args, places) in enumerate(requests):
            plan = Plan((Step(tool, args),))
            lesson = Lesson(
                request, plan, (), (), f"past{number}", "", "", request, "t", "f", bool(places)
            )
            row = await plan_cache.keep(
                tx, host_id, "it", lesson, turn_id=f"past{number}", now=now - timedelta(days=9)
            )
            await tx.execute(
                "UPDATE plan_cache SET uses = :uses, used_at = :at, why = :why WHERE id = :id",
                {
                    "uses": len(requests) - number,
                    "at": (now - timedelta(hours=number)).timestamp(),
                    "why": "other_values" if number in {1, 3} else "exact",
                    "id": row,
                },
            )
            if number == 0:
                await plan_cache.approve(tx, row, True)
