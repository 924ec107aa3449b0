"""What a host keeps, marked: a canary in every table of both databases, every log and folder.

`ROWS` names every table there is; a new one fails until it says how a host's row looks.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from bot.app import House

CANARY = "C4N4RY"
"""Stands in what the host keeps."""
NAME = "N4M3"
"""Stands in the names of the host's folders."""

# Owned by no module of ours.
_OTHERS = frozenset({"sqlite_sequence", "migrations"})
_CHAT = "'telegram:9:'"

ROWS: dict[str, str] = {
    "kv": "INSERT INTO kv VALUES ('pref:' || :host, :canary)",
    "inbox": f"INSERT INTO inbox (channel, bot_id, update_id, chat_key, body, state, note, "
    f"received_at) VALUES ('telegram', '1', 1, {_CHAT}, :canary, 'done', :canary, :now)",
    "inbox_offsets": "INSERT INTO inbox_offsets VALUES (:canary, '1', 5)",
    "outbox": f"INSERT INTO outbox (key, place, channel, chat_key, body, state, created_at, "
    f"updated_at) VALUES (:canary, 9000, 'telegram', {_CHAT}, :json, 'sent', :now, :now)",
    "actors": "UPDATE actors SET display_name = :canary WHERE id = :host",
    "identities": "INSERT INTO identities VALUES (:canary, '1', :host)",
    "pairing_codes": "INSERT INTO pairing_codes VALUES (:canary, 'host', :now, :later, NULL, "
    ":host)",
    "pairing_attempts": "INSERT INTO pairing_attempts VALUES (:canary, '1', 1, :now)",
    "stranger_notices": "INSERT INTO stranger_notices VALUES (:canary, '1', :now)",
    "turns": f"INSERT INTO turns (id, inbound_id, actor_id, conversation, lang, request, answer, "
    f"reply_json, state, final_kind, started_at, ended_at, log_json, logged) VALUES "
    f"('C4N4RYturn', 'x', :host, {_CHAT}, 'it', :canary, :canary, :json, 'closed', 'answer', "
    f":now, :now, :json, 1)",
    "effects": "INSERT INTO effects (key, turn_id, step, tool, state, before_json, expected_json, "
    "summary_json, started_at, ended_at) VALUES ('C4N4RYturn:1', 'C4N4RYturn', 1, 'delete_files', "
    "'done', :json, :json, :json, :now, :now)",
    "scratchpad": "INSERT INTO scratchpad VALUES ('feedfacefeedface', :host, 'C4N4RYturn', 1, "
    "'read_files', 'text', :canary, 6, :now, :later)",
    "usage": "INSERT INTO usage (actor_id, day) VALUES (:host, :canary)",
    "suspensions": f"INSERT INTO suspensions (id, kind, turn_id, actor_id, conversation, "
    f"fields_json, values_json, data_json, state_json, created_at, expires_at) VALUES "
    f"('hostask', 'approval', 'C4N4RYturn', :host, {_CHAT}, '[]', :json, :json, :json, :now, "
    f":later)",
    "suspension_tokens": "INSERT INTO suspension_tokens VALUES (:canary, 'hostask', 0, :canary)",
    "accounts": "INSERT INTO accounts VALUES (:host, :canary, :canary, 'mail', :json, :now)",
    "mcp_servers": "INSERT INTO mcp_servers VALUES (:canary, :host, :json, :canary, :json, :now)",
    "mcp_tools": "INSERT INTO mcp_tools VALUES (:canary, :canary, :json, 0, :json, :json, :now)",
    "credentials": "INSERT INTO credentials VALUES (:host, :canary, :canary, :now, :now)",
    "secret_answers": "INSERT INTO secret_answers VALUES (:canary, :host, 'C4N4RYturn', :canary, "
    ":later)",
    "actions": f"INSERT INTO actions VALUES (:canary, 'C4N4RYturn', :host, {_CHAT}, 'x', 'undo', "
    f":json, :now, :later, NULL)",
    "mandates": "INSERT INTO mandates (actor_id, request, tool, program, sinks, shown_json, most, "
    "granted_at, expires_at) VALUES (:host, :canary, 'delete_files', 'p', :canary, :json, 1, "
    ":now, :later)",
    "agreed": "INSERT INTO agreed VALUES (:host, :canary, 3, 3, :now)",
    "recipients": "INSERT INTO recipients VALUES (:host, :canary, :now)",
    "positions": "INSERT INTO positions VALUES (:host, 45.1, 7.7, 5, 'shared', :canary, :now, "
    ":later)",
    "chats": "INSERT INTO chats (channel, chat_id, title, changed_at) VALUES ('telegram', '-5', "
    ":canary, :now)",
    "unreachable": "INSERT INTO unreachable (channel, chat_id, actor_id, detail, told_at) VALUES "
    "('telegram', '9', :host, :canary, :now)",
    "visitors": "INSERT INTO visitors (channel, sender_id, name, asked_at) VALUES ('telegram', "
    "'4', :canary, :now)",
    "grants": "INSERT INTO grants (actor_id, kind, target, granted_at) VALUES (:host, 'read', "
    ":canary, :now)",
    "console_links": "INSERT INTO console_links VALUES (:canary, :host, :now, :later)",
    "console_sessions": "INSERT INTO console_sessions VALUES (:canary, :host, NULL, :now, :now)",
    # No room for words: the turn's id is marked.
    "forgetting": "INSERT INTO forgetting VALUES (:host, :now, :canary, NULL)",
    "votes": "INSERT INTO votes VALUES ('C4N4RYturn', :host, 'up', :now)",
    "plan_cache": "INSERT INTO plan_cache (version, actor_id, lang, text, exact, plan_json, "
    "bindings_json, values_json, tools, families, changes, turn_id, learnt_at) VALUES (1, :host, "
    "'it', :canary, :canary, :json, :json, :json, '[]', '[]', 0, 'C4N4RYturn', :now)",
    "evidence": "INSERT INTO evidence (actor_id, turn_id, features, tools, learnt_at) VALUES "
    "(:host, 'C4N4RYturn', x'000000000000', :json, :now)",
    "evidence_salts": "INSERT OR REPLACE INTO evidence_salts "
    "VALUES (:host, CAST(:canary AS BLOB))",
    "disliked": "INSERT INTO disliked VALUES (:host, :canary, :canary, :later)",
    "embedder_floors": "INSERT INTO embedder_floors VALUES (:canary, 0.5, 40, 0, 'file', :now)",
    "observations": "INSERT INTO observations (version, turn_id, actor_id, lang, intent, said, "
    "cluster, plan_json, way, fingerprint, tools, families, level, latency_ms, at) VALUES (1, "
    "'C4N4RYturn', :host, 'it', :canary, :canary, :canary, :json, :canary, :canary, '[]', '[]', "
    "'engine', 1, :now)",
    "champions": "INSERT INTO champions (version, intent, said, cluster, lang, plan_json, way, "
    "fingerprint, status, up, down, ran, broke, latency_ms, score, tools, families, taught_by, "
    "created_at, changed_at) VALUES (1, :canary, :canary, :canary, 'it', :json, :canary, "
    ":canary, 'active', 1, 0, 0, 0, 1, 1, '[]', '[]', :host, :now, :now)",
    "anti_autopaths": "INSERT INTO anti_autopaths VALUES (:host, :canary, :canary, :canary, "
    ":canary, 3, :later, NULL, :now)",
}


async def fill(house: House, host_id: str) -> dict[str, int]:
    """Mark every table; how many rows hold the canary in each. Fails for an unknown table."""
    now = time.time()
    values = {
        "host": host_id,
        "canary": CANARY,
        "json": f'{{"said": "{CANARY}"}}',
        "now": now,
        "later": now + 3000,
    }
    found: dict[str, int] = {}
    for database in (house.stores.main, house.stores.memory):
        async with database.write() as tx:
            rows = await tx.fetch_all("SELECT name FROM sqlite_master WHERE type = 'table'")
            tables = {str(row["name"]) for row in rows} - _OTHERS
            unknown = tables - set(ROWS)
            assert not unknown, f"no canary for {unknown}"
            for table in (name for name in ROWS if name in tables):
                wanted = {k: v for k, v in values.items() if f":{k}" in ROWS[table]}
                await tx.execute(ROWS[table], wanted)
                kept = await tx.fetch_all(f"SELECT * FROM {table}")
                found[table] = sum(CANARY in str(tuple(row)) for row in kept)
    return found


def fill_files(house: House, host_id: str, notes: Path) -> int:
    """Mark the host's folders, their trash, and every log of the home; how many files."""
    home = house.settings.metnos_home
    places = [
        notes / "diario.md",
        notes / f"{NAME}-sotto" / "conti.md",
        notes / ".metnos-trash" / "hostturn" / "diario.md",
        home / "files" / host_id / "mio.md",
        home / "turns" / "2026-01-01.jsonl",
        home / "policy" / "2026-01.jsonl",
        home / "metnos.log",
        home / "model.log",
        home / "private" / "nota.txt",
        home / ".env",
    ]
    for place in places:
        place.parent.mkdir(parents=True, exist_ok=True)
        with place.open("a", encoding="utf-8") as file:
            file.write(f'{{"x": "{CANARY}"}}\n')
    return len(places)


def holds(data: Any, canary: str = CANARY) -> bool:
    return canary in (data if isinstance(data, str) else repr(data))
