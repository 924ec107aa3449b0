"""The tables of both files as a numbered list of changes, forward only.

A change that has been released is never edited; a new one follows it. Each table belongs to the
module named above it, which alone writes SQL for it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from core.clock import Clock, to_ts
from core.errors import StoreCorrupt, StoreTooNew
from core.store import memory_schema
from core.store.database import Database, Transaction
from core.store.first_changes import FIRST_CHANGES
from core.store.first_tables import FIRST_TABLES


@dataclass(frozen=True, slots=True)
class Migration:
    """One step of a file's history; `script` is any number of SQL statements."""

    number: int
    name: str
    script: str

    def statements(self) -> list[str]:
        found, part = [], ""
        for line in self.script.splitlines():
            part += line + "\n"
            if sqlite3.complete_statement(part):
                found.append(part.strip())
                part = ""
        return found


_LEDGER = """
CREATE TABLE IF NOT EXISTS migrations (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    applied_at REAL NOT NULL
)"""

MAIN: tuple[Migration, ...] = (
    Migration(
        1,
        "first light",
        FIRST_TABLES,
    ),
    *(Migration(number, name, script) for number, name, script in FIRST_CHANGES),
    Migration(
        10,
        "groups",
        """
-- core.store.chats
CREATE TABLE chats (
    channel TEXT NOT NULL,
    chat_id TEXT NOT NULL,
    title TEXT NOT NULL,
    is_forum INTEGER NOT NULL DEFAULT 0,
    is_admin INTEGER,
    state TEXT NOT NULL DEFAULT 'new' CHECK (state IN ('new', 'on', 'off', 'gone')),
    told_at REAL,
    asked_at REAL,
    changed_at REAL NOT NULL,
    PRIMARY KEY (channel, chat_id)
) WITHOUT ROWID;

-- core.store.turns
ALTER TABLE turns ADD COLUMN message_ref TEXT;
""",
    ),
    Migration(
        11,
        "chats out of reach",
        """
-- core.store.reach
CREATE TABLE unreachable (
    channel TEXT NOT NULL,
    chat_id TEXT NOT NULL,
    actor_id TEXT,
    detail TEXT NOT NULL,
    lost_at REAL,
    told_at REAL NOT NULL,
    PRIMARY KEY (channel, chat_id)
) WITHOUT ROWID;

-- core.store.outbox
ALTER TABLE outbox ADD COLUMN urgent INTEGER NOT NULL DEFAULT 0;
CREATE INDEX outbox_urgent ON outbox (channel, place) WHERE urgent = 1 AND state = 'pending';
""",
    ),
    Migration(
        12,
        "guests",
        """
-- core.store.actors
ALTER TABLE actors ADD COLUMN turns_per_hour INTEGER CHECK (turns_per_hour >= 0);
ALTER TABLE actors ADD COLUMN tokens_per_day INTEGER CHECK (tokens_per_day >= 0);
ALTER TABLE actors ADD COLUMN money_per_day REAL CHECK (money_per_day >= 0);

-- core.store.visitors
CREATE TABLE visitors (
    channel TEXT NOT NULL,
    sender_id TEXT NOT NULL,
    name TEXT NOT NULL,
    lang TEXT,
    state TEXT NOT NULL DEFAULT 'waiting'
        CHECK (state IN ('waiting', 'admitted', 'refused', 'blocked')),
    asked_at REAL NOT NULL,
    decided_at REAL,
    PRIMARY KEY (channel, sender_id)
) WITHOUT ROWID;
CREATE INDEX visitors_asked ON visitors (asked_at);

-- core.store.grants
CREATE TABLE grants_of_rights (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    actor_id TEXT NOT NULL REFERENCES actors (id),
    kind TEXT NOT NULL CHECK (kind IN ('host', 'read', 'write', 'right')),
    target TEXT NOT NULL,
    granted_at REAL NOT NULL,
    expires_at REAL,
    UNIQUE (actor_id, kind, target)
);
INSERT INTO grants_of_rights SELECT id, actor_id, kind, target, granted_at, expires_at FROM grants;
DROP TABLE grants;
ALTER TABLE grants_of_rights RENAME TO grants;
CREATE INDEX grants_expiry ON grants (expires_at) WHERE expires_at IS NOT NULL;

-- core.store.turns
CREATE INDEX turns_waiting ON turns (actor_id) WHERE state = 'suspended';
CREATE INDEX turns_of_actor ON turns (actor_id, started_at);
""",
    ),
    Migration(
        13,
        "groups that move",
        """
-- core.store.chats
ALTER TABLE chats ADD COLUMN moved_to TEXT;
""",
    ),
    Migration(
        14,
        "votes",
        """
-- core.store.feedback
CREATE TABLE votes (
    turn_id TEXT NOT NULL REFERENCES turns (id),
    actor_id TEXT NOT NULL REFERENCES actors (id),
    vote TEXT CHECK (vote IN ('up', 'down')),
    at REAL NOT NULL,
    PRIMARY KEY (turn_id, actor_id)
) WITHOUT ROWID;
""",
    ),
    Migration(
        15,
        "what comes with a request",
        """
-- core.store.turns
ALTER TABLE turns ADD COLUMN given_json TEXT;
""",
    ),
    Migration(
        16,
        "accounts",
        """
-- core.store.accounts
CREATE TABLE accounts (
    actor_id TEXT NOT NULL REFERENCES actors (id),
    key TEXT NOT NULL,
    name TEXT NOT NULL,
    kind TEXT NOT NULL,
    values_json TEXT NOT NULL,
    updated_at REAL NOT NULL,
    PRIMARY KEY (actor_id, key)
) WITHOUT ROWID;
""",
    ),
    Migration(
        17,
        "console",
        """
-- core.store.console
CREATE TABLE console_links (
    token_hash TEXT PRIMARY KEY,
    actor_id TEXT NOT NULL REFERENCES actors (id),
    created_at REAL NOT NULL,
    expires_at REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE console_sessions (
    token_hash TEXT PRIMARY KEY,
    actor_id TEXT NOT NULL REFERENCES actors (id),
    lang TEXT,
    created_at REAL NOT NULL,
    seen_at REAL NOT NULL
) WITHOUT ROWID;

-- core.store.usage
CREATE INDEX usage_day ON usage (day);
""",
    ),
    Migration(
        18,
        "what is to be forgotten",
        """
-- core.store.forgetting
CREATE TABLE forgetting (
    actor_id TEXT PRIMARY KEY REFERENCES actors (id),
    before REAL NOT NULL,
    card TEXT,
    swept_at REAL
) WITHOUT ROWID;
""",
    ),
    Migration(
        19,
        "turns and effects in pages",
        """
-- core.store.turns, read by core.store.turn_pages
ALTER TABLE turns ADD COLUMN source TEXT;
ALTER TABLE turns ADD COLUMN tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE turns ADD COLUMN busy_ms REAL NOT NULL DEFAULT 0;
CREATE INDEX turns_listed ON turns (started_at, actor_id, final_kind, source);
CREATE INDEX turns_busy ON turns (source, final_kind, started_at, busy_ms);

-- core.store.effects
CREATE INDEX effects_listed ON effects (started_at, state);
ALTER TABLE effects ADD COLUMN undoes TEXT;
UPDATE effects SET undoes = json_extract(summary_json, '$.undoes')
    WHERE tool = 'undo_last_turn';
CREATE INDEX effects_undoes ON effects (undoes) WHERE undoes IS NOT NULL;
""",
    ),
    Migration(
        20,
        "servers of tools",
        """
-- core.store.mcp
CREATE TABLE mcp_servers (
    name TEXT PRIMARY KEY,
    actor_id TEXT NOT NULL REFERENCES actors (id),
    argv_json TEXT NOT NULL,
    url TEXT NOT NULL,
    env_json TEXT NOT NULL,
    added_at REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE mcp_tools (
    server TEXT NOT NULL,
    tool TEXT NOT NULL,
    seen_json TEXT NOT NULL,
    gone INTEGER NOT NULL DEFAULT 0,
    approved_json TEXT,
    approval_json TEXT,
    approved_at REAL,
    PRIMARY KEY (server, tool)
) WITHOUT ROWID;
""",
    ),
)

MEMORY: tuple[Migration, ...] = tuple(
    Migration(number, name, script) for number, name, script in memory_schema.CHANGES
)


async def migrate(database: Database, migrations: Sequence[Migration], clock: Clock) -> list[int]:
    """Bring a file to the newest form; the numbers that were applied, none when it was there.

    All pending changes are one transaction. Before the first of them a file that holds something
    is copied beside itself as `NAME.before-N`. Raises `StoreTooNew` when a later version wrote
    the file, `StoreCorrupt` when tables that should be there are not. Safe to run twice, and in
    two processes at once.
    """
    known = {migration.number for migration in migrations}
    async with database.write() as tx:
        had_ledger = bool(await _present(tx, "migrations"))
        if not had_ledger:
            await tx.execute(_LEDGER)
        rows = await tx.fetch_all("SELECT number FROM migrations ORDER BY number")
        applied = {int(row["number"]) for row in rows}
        if newer := applied - known:
            raise StoreTooNew(
                f"{database.path.name} has change {max(newer)}", file=database.path.name
            )
        pending = [m for m in migrations if m.number not in applied]
        if pending and applied:
            # The reader copies what is committed; the write lock keeps others from adding to it.
            name = f"{database.path.name}.before-{pending[0].number}"
            await database.backup(database.path.with_name(name))
        for migration in pending:
            for statement in migration.statements():
                await tx.execute(statement)
            await tx.execute(
                "INSERT INTO migrations (number, name, applied_at) VALUES (:number, :name, :at)",
                {"number": migration.number, "name": migration.name, "at": to_ts(clock.now())},
            )
        if not pending:
            await _check_schema(tx, migrations)
    return [migration.number for migration in pending]


def backups_of(path: Path) -> list[Path]:
    """The copies that `migrate` made beside a database file, oldest first."""
    return sorted(
        (p for p in path.parent.glob(f"{path.name}.before-*") if p.suffix[8:].isdecimal()),
        key=lambda p: int(p.suffix[8:]),
    )


async def _present(tx: Transaction, table: str) -> int:
    row = await tx.fetch_one(
        "SELECT COUNT(*) AS n FROM sqlite_master WHERE type = 'table' AND name = :name",
        {"name": table},
    )
    return 0 if row is None else int(row["n"])


async def _check_schema(tx: Transaction, migrations: Sequence[Migration]) -> None:
    """Compare with what the changes make of an empty file: quick_check does not miss a table."""
    wanted = sqlite3.connect(":memory:")
    try:
        for migration in migrations:
            wanted.executescript(migration.script)
        expected = set(wanted.execute("SELECT type, name, sql FROM sqlite_master").fetchall())
    finally:
        wanted.close()
    rows = await tx.fetch_all("SELECT type, name, sql FROM sqlite_master")
    if lost := expected - {(row["type"], row["name"], row["sql"]) for row in rows}:
        raise StoreCorrupt(f"{len(lost)} parts of the schema are missing")
