"""The changes of `metnos.db` that came after its first tables: number, name and script of each.

Released, so never edited: later changes follow in `core.store.migrations`. Each table belongs to
the module named above it.
"""

FIRST_CHANGES: tuple[tuple[int, str, str], ...] = (
    (
        2,
        "grants",
        """
-- core.store.grants
CREATE TABLE grants (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    actor_id TEXT NOT NULL REFERENCES actors (id),
    kind TEXT NOT NULL CHECK (kind IN ('host', 'read', 'write')),
    target TEXT NOT NULL,
    granted_at REAL NOT NULL,
    expires_at REAL,
    UNIQUE (actor_id, kind, target)
);
CREATE INDEX grants_expiry ON grants (expires_at) WHERE expires_at IS NOT NULL;
""",
    ),
    (
        3,
        "dialogs",
        """
-- core.store.suspensions
CREATE TABLE suspensions (
    id TEXT PRIMARY KEY,
    kind TEXT NOT NULL
        CHECK (kind IN ('inputs', 'approval', 'location', 'disambiguation', 'cap')),
    state TEXT NOT NULL DEFAULT 'open' CHECK (
        state IN ('open', 'claimed', 'done', 'cancelled', 'expired', 'indeterminate')),
    turn_id TEXT NOT NULL,
    actor_id TEXT NOT NULL,
    conversation TEXT NOT NULL,
    prompt_key TEXT,
    digest TEXT,
    fields_json TEXT NOT NULL,
    cursor INTEGER NOT NULL DEFAULT 0,
    values_json TEXT,
    data_json TEXT,
    state_json TEXT,
    created_at REAL NOT NULL,
    expires_at REAL NOT NULL,
    claimed_at REAL,
    settled_at REAL
);
CREATE INDEX suspensions_open ON suspensions (expires_at) WHERE state = 'open';
CREATE INDEX suspensions_claimed ON suspensions (claimed_at) WHERE state = 'claimed';
CREATE INDEX suspensions_conversation ON suspensions (conversation, actor_id, created_at);
CREATE INDEX suspensions_turn ON suspensions (turn_id);
CREATE INDEX suspensions_settled ON suspensions (settled_at) WHERE settled_at IS NOT NULL;
CREATE TABLE suspension_tokens (
    token_hash TEXT PRIMARY KEY,
    suspension_id TEXT NOT NULL REFERENCES suspensions (id) ON DELETE CASCADE,
    cursor INTEGER NOT NULL,
    choice TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX suspension_tokens_of ON suspension_tokens (suspension_id);
""",
    ),
    (
        4,
        "credentials",
        """
-- core.store.credentials
CREATE TABLE credentials (
    actor_id TEXT NOT NULL,
    name TEXT NOT NULL,
    sealed BLOB NOT NULL,
    created_at REAL NOT NULL,
    updated_at REAL NOT NULL,
    PRIMARY KEY (actor_id, name)
) WITHOUT ROWID;
CREATE TABLE secret_answers (
    handle TEXT PRIMARY KEY,
    actor_id TEXT NOT NULL,
    turn_id TEXT NOT NULL,
    sealed BLOB NOT NULL,
    expires_at REAL NOT NULL
) WITHOUT ROWID;
CREATE INDEX secret_answers_turn ON secret_answers (turn_id);
CREATE INDEX secret_answers_expiry ON secret_answers (expires_at);
""",
    ),
    (
        5,
        "actions",
        """
-- core.store.actions
CREATE TABLE actions (
    token_hash TEXT PRIMARY KEY,
    turn_id TEXT NOT NULL,
    actor_id TEXT NOT NULL,
    conversation TEXT NOT NULL,
    shown_key TEXT NOT NULL,
    name TEXT NOT NULL,
    params_json TEXT,
    created_at REAL NOT NULL,
    expires_at REAL NOT NULL,
    used_at REAL
) WITHOUT ROWID;
CREATE INDEX actions_shown ON actions (shown_key);
CREATE INDEX actions_expiry ON actions (expires_at);
""",
    ),
    (
        6,
        "messages found by their id",
        """
-- core.store.outbox
CREATE INDEX outbox_message ON outbox (chat_key, message_id) WHERE message_id IS NOT NULL;
""",
    ),
    (
        7,
        "approvals",
        """
-- core.store.approvals
CREATE TABLE mandates (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    actor_id TEXT NOT NULL REFERENCES actors (id),
    request TEXT NOT NULL,
    tool TEXT NOT NULL,
    program TEXT NOT NULL,
    sinks TEXT NOT NULL,
    shown_json TEXT,
    most INTEGER NOT NULL,
    granted_at REAL NOT NULL,
    expires_at REAL NOT NULL,
    UNIQUE (actor_id, request, tool, sinks)
);
CREATE INDEX mandates_expiry ON mandates (expires_at);
CREATE TABLE agreed (
    actor_id TEXT NOT NULL REFERENCES actors (id),
    kind TEXT NOT NULL,
    times INTEGER NOT NULL,
    most INTEGER NOT NULL,
    last_at REAL NOT NULL,
    PRIMARY KEY (actor_id, kind)
) WITHOUT ROWID;
CREATE TABLE recipients (
    actor_id TEXT NOT NULL REFERENCES actors (id),
    address TEXT NOT NULL,
    agreed_at REAL NOT NULL,
    PRIMARY KEY (actor_id, address)
) WITHOUT ROWID;

-- core.store.turns
ALTER TABLE turns ADD COLUMN external INTEGER NOT NULL DEFAULT 0;
""",
    ),
    (
        8,
        "positions",
        """
-- core.store.positions
CREATE TABLE positions (
    actor_id TEXT PRIMARY KEY REFERENCES actors (id),
    lat REAL NOT NULL CHECK (lat BETWEEN -90 AND 90),
    lon REAL NOT NULL CHECK (lon BETWEEN -180 AND 180),
    accuracy_m REAL,
    source TEXT NOT NULL CHECK (source IN ('shared', 'live', 'venue', 'typed')),
    label TEXT NOT NULL,
    at REAL NOT NULL,
    expires_at REAL NOT NULL
) WITHOUT ROWID;
""",
    ),
    (
        9,
        "answers that are none",
        """
-- core.store.suspensions
ALTER TABLE suspensions ADD COLUMN missed INTEGER NOT NULL DEFAULT 0;
""",
    ),
)
