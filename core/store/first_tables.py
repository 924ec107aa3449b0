"""The tables that `metnos.db` began with. Released, so never edited: later changes follow in
`core.store.migrations`. Each table belongs to the module named above it.
"""

FIRST_TABLES = """
-- core.store.kv
CREATE TABLE kv (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

-- core.store.inbox
CREATE TABLE inbox (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    channel TEXT NOT NULL,
    bot_id TEXT NOT NULL,
    update_id INTEGER NOT NULL,
    chat_key TEXT NOT NULL,
    body TEXT NOT NULL,
    state TEXT NOT NULL DEFAULT 'new' CHECK (state IN ('new', 'running', 'done', 'dead')),
    attempts INTEGER NOT NULL DEFAULT 0,
    note TEXT,
    received_at REAL NOT NULL,
    UNIQUE (channel, bot_id, update_id)
);
CREATE INDEX inbox_open ON inbox (channel, bot_id, id) WHERE state IN ('new', 'running');
CREATE INDEX inbox_received ON inbox (received_at);
CREATE TABLE inbox_offsets (
    channel TEXT NOT NULL,
    bot_id TEXT NOT NULL,
    next_offset INTEGER NOT NULL,
    PRIMARY KEY (channel, bot_id)
) WITHOUT ROWID;

-- core.store.outbox
CREATE TABLE outbox (
    key TEXT PRIMARY KEY,
    place INTEGER NOT NULL,
    channel TEXT NOT NULL,
    chat_key TEXT NOT NULL,
    body TEXT NOT NULL,
    state TEXT NOT NULL DEFAULT 'pending'
        CHECK (state IN ('pending', 'sending', 'sent', 'unknown', 'dead')),
    attempts INTEGER NOT NULL DEFAULT 0,
    message_id TEXT,
    not_before REAL,
    created_at REAL NOT NULL,
    updated_at REAL NOT NULL,
    error TEXT
);
CREATE INDEX outbox_place ON outbox (place);
CREATE INDEX outbox_open ON outbox (channel, place) WHERE state IN ('pending', 'sending');
CREATE INDEX outbox_open_chat ON outbox (channel, chat_key, place)
    WHERE state IN ('pending', 'sending');
CREATE INDEX outbox_updated ON outbox (updated_at);

-- core.store.actors
CREATE TABLE actors (
    id TEXT PRIMARY KEY,
    role TEXT NOT NULL CHECK (role IN ('host', 'guest')),
    display_name TEXT NOT NULL,
    autonomy TEXT NOT NULL DEFAULT 'supervised'
        CHECK (autonomy IN ('read_only', 'supervised', 'full')),
    lang TEXT,
    tz TEXT,
    created_at REAL NOT NULL,
    revoked_at REAL
);
CREATE UNIQUE INDEX actors_one_host ON actors (role) WHERE role = 'host' AND revoked_at IS NULL;
CREATE TABLE identities (
    channel TEXT NOT NULL,
    sender_id TEXT NOT NULL,
    actor_id TEXT NOT NULL REFERENCES actors (id),
    PRIMARY KEY (channel, sender_id)
) WITHOUT ROWID;
CREATE INDEX identities_actor ON identities (actor_id);

-- core.store.pairing
CREATE TABLE pairing_codes (
    code_hash TEXT PRIMARY KEY,
    role TEXT NOT NULL CHECK (role IN ('host', 'guest')),
    created_at REAL NOT NULL,
    expires_at REAL NOT NULL,
    used_at REAL,
    created_by TEXT
);
CREATE TABLE pairing_attempts (
    channel TEXT NOT NULL,
    sender_id TEXT NOT NULL,
    failed INTEGER NOT NULL DEFAULT 0,
    window_started_at REAL NOT NULL,
    PRIMARY KEY (channel, sender_id)
) WITHOUT ROWID;
CREATE TABLE stranger_notices (
    channel TEXT NOT NULL,
    sender_id TEXT NOT NULL,
    noticed_at REAL NOT NULL,
    PRIMARY KEY (channel, sender_id)
) WITHOUT ROWID;

-- core.store.turns
CREATE TABLE turns (
    id TEXT PRIMARY KEY,
    inbound_id TEXT NOT NULL UNIQUE,
    actor_id TEXT NOT NULL,
    conversation TEXT NOT NULL,
    lang TEXT NOT NULL,
    request TEXT NOT NULL,
    answer TEXT,
    reply_json TEXT,
    state TEXT NOT NULL DEFAULT 'running' CHECK (state IN ('running', 'suspended', 'closed')),
    state_json TEXT,
    final_kind TEXT,
    started_at REAL NOT NULL,
    ended_at REAL,
    segment INTEGER NOT NULL DEFAULT 1,
    logged INTEGER NOT NULL DEFAULT 0,
    log_json TEXT,
    log_day TEXT
);
CREATE INDEX turns_running ON turns (started_at) WHERE state = 'running';
CREATE INDEX turns_unlogged ON turns (ended_at) WHERE logged = 0 AND log_json IS NOT NULL;
CREATE INDEX turns_conversation ON turns (conversation, actor_id, ended_at)
    WHERE state = 'closed';
CREATE INDEX turns_started ON turns (started_at);

-- core.store.effects
CREATE TABLE effects (
    key TEXT PRIMARY KEY,
    turn_id TEXT NOT NULL,
    step INTEGER NOT NULL,
    tool TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('started', 'done', 'failed', 'unknown')),
    before_json TEXT,
    expected_json TEXT,
    summary_json TEXT,
    started_at REAL NOT NULL,
    ended_at REAL
);
CREATE INDEX effects_turn ON effects (turn_id, step);
CREATE INDEX effects_open ON effects (started_at) WHERE state = 'started';

-- core.store.scratchpad
CREATE TABLE scratchpad (
    id TEXT PRIMARY KEY,
    actor_id TEXT NOT NULL,
    turn_id TEXT NOT NULL,
    step INTEGER NOT NULL,
    tool TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('text', 'json', 'list')),
    content BLOB NOT NULL,
    size_bytes INTEGER NOT NULL,
    created_at REAL NOT NULL,
    expires_at REAL
);
CREATE INDEX scratchpad_turn ON scratchpad (turn_id, actor_id);
CREATE INDEX scratchpad_expiry ON scratchpad (expires_at) WHERE expires_at IS NOT NULL;

-- core.store.usage
CREATE TABLE usage (
    actor_id TEXT NOT NULL,
    day TEXT NOT NULL,
    tokens_in INTEGER NOT NULL DEFAULT 0,
    tokens_out INTEGER NOT NULL DEFAULT 0,
    cached INTEGER NOT NULL DEFAULT 0,
    money REAL NOT NULL DEFAULT 0,
    turns INTEGER NOT NULL DEFAULT 0,
    from_memory INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (actor_id, day)
) WITHOUT ROWID;
"""
