"""The changes of `memory.db`, which can be learnt again: (number, name, SQL), oldest first.

A change that has been released is never edited; a new one follows it.
"""

from __future__ import annotations

CHANGES: tuple[tuple[int, str, str], ...] = (
    (
        1,
        "plans that worked",
        """
-- core.store.plan_cache
CREATE TABLE plan_cache (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    version INTEGER NOT NULL,
    actor_id TEXT NOT NULL,
    lang TEXT NOT NULL,
    text TEXT NOT NULL,
    exact TEXT NOT NULL,
    shape TEXT NOT NULL DEFAULT '',
    wording TEXT NOT NULL DEFAULT '',
    meaning TEXT NOT NULL DEFAULT '',
    plan_json TEXT NOT NULL,
    bindings_json TEXT NOT NULL,
    values_json TEXT NOT NULL,
    tools TEXT NOT NULL,
    families TEXT NOT NULL,
    changes INTEGER NOT NULL,
    why_exact TEXT NOT NULL DEFAULT '',
    approved INTEGER NOT NULL DEFAULT 0,
    uses INTEGER NOT NULL DEFAULT 0,
    turn_id TEXT NOT NULL,
    learnt_at REAL NOT NULL,
    used_at REAL,
    why TEXT NOT NULL DEFAULT '',
    UNIQUE (actor_id, exact)
);
CREATE INDEX plan_cache_exact ON plan_cache (exact);
CREATE INDEX plan_cache_shape ON plan_cache (actor_id, shape) WHERE shape <> '';
CREATE INDEX plan_cache_wording ON plan_cache (actor_id, wording) WHERE wording <> '';
CREATE INDEX plan_cache_meaning ON plan_cache (meaning) WHERE meaning <> '';
CREATE INDEX plan_cache_turn ON plan_cache (turn_id);
""",
    ),
    (
        2,
        "plans that were not liked",
        """
-- core.store.disliked
CREATE TABLE disliked (
    actor_id TEXT NOT NULL,
    exact TEXT NOT NULL,
    plan TEXT NOT NULL,
    until REAL NOT NULL,
    PRIMARY KEY (actor_id, exact, plan)
) WITHOUT ROWID;
""",
    ),
    (
        3,
        "how near requests lie",
        """
-- core.store.plan_cache
ALTER TABLE plan_cache ADD COLUMN vector BLOB;
ALTER TABLE plan_cache ADD COLUMN embedder TEXT NOT NULL DEFAULT '';
ALTER TABLE plan_cache ADD COLUMN served_turn TEXT NOT NULL DEFAULT '';

-- core.store.embedder_floors
CREATE TABLE embedder_floors (
    embedder TEXT PRIMARY KEY,
    floor REAL NOT NULL,
    pairs INTEGER NOT NULL,
    lost INTEGER NOT NULL,
    source TEXT NOT NULL,
    measured_at REAL NOT NULL
) WITHOUT ROWID;
""",
    ),
    (
        4,
        "plans by merit",
        """
-- core.store.observations
CREATE TABLE observations (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    version INTEGER NOT NULL,
    turn_id TEXT NOT NULL UNIQUE,
    actor_id TEXT NOT NULL,
    lang TEXT NOT NULL,
    intent TEXT NOT NULL,
    said TEXT NOT NULL,
    cluster TEXT NOT NULL,
    plan_json TEXT NOT NULL,
    way TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    tools TEXT NOT NULL,
    families TEXT NOT NULL,
    level TEXT NOT NULL,
    latency_ms INTEGER NOT NULL,
    verdict TEXT NOT NULL DEFAULT '',
    verdict_at REAL,
    at REAL NOT NULL,
    exact TEXT NOT NULL DEFAULT '',
    embedder TEXT NOT NULL DEFAULT '',
    embedding BLOB
);
CREATE INDEX observations_plan ON observations (intent, fingerprint, id);
CREATE INDEX observations_cluster ON observations (intent, cluster, id);

-- core.store.autopath
CREATE TABLE champions (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    version INTEGER NOT NULL,
    intent TEXT NOT NULL,
    said TEXT NOT NULL,
    cluster TEXT NOT NULL,
    lang TEXT NOT NULL,
    plan_json TEXT NOT NULL,
    way TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    status TEXT NOT NULL,
    is_champion INTEGER NOT NULL DEFAULT 0,
    up INTEGER NOT NULL,
    down INTEGER NOT NULL,
    ran INTEGER NOT NULL,
    broke INTEGER NOT NULL,
    latency_ms REAL NOT NULL,
    score REAL NOT NULL,
    tools TEXT NOT NULL,
    families TEXT NOT NULL,
    taught_by TEXT NOT NULL,
    why TEXT NOT NULL DEFAULT '',
    created_at REAL NOT NULL,
    used_at REAL,
    changed_at REAL NOT NULL,
    UNIQUE (intent, cluster, fingerprint)
);

-- core.store.antis
CREATE TABLE anti_autopaths (
    actor_id TEXT NOT NULL,
    intent TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    said TEXT NOT NULL,
    way TEXT NOT NULL,
    fails INTEGER NOT NULL DEFAULT 0,
    until REAL,
    soft_until REAL,
    changed_at REAL NOT NULL,
    PRIMARY KEY (actor_id, intent, fingerprint)
) WITHOUT ROWID;
""",
    ),
    (
        5,
        "plans read by the words of today",
        """
-- core.store.plan_cache
ALTER TABLE plan_cache ADD COLUMN request TEXT NOT NULL DEFAULT '';
ALTER TABLE plan_cache ADD COLUMN edition TEXT NOT NULL DEFAULT '';
""",
    ),
    (
        6,
        "which tools served what",
        """
-- core.store.evidence
CREATE TABLE evidence (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    actor_id TEXT NOT NULL,
    turn_id TEXT NOT NULL,
    features BLOB NOT NULL,
    tools TEXT NOT NULL,
    learnt_at REAL NOT NULL,
    UNIQUE (actor_id, turn_id)
);
CREATE INDEX evidence_actor ON evidence (actor_id, id);
CREATE INDEX evidence_turn ON evidence (turn_id);
CREATE TABLE evidence_salts (actor_id TEXT PRIMARY KEY, salt BLOB NOT NULL) WITHOUT ROWID;
""",
    ),
)
