"""All statements of the SQL store, written once for every database: `?` stands for a value.

Each names one tenant and root, so it touches one shard; only `NAMES` and `recent` read a whole tenant.
"""

from __future__ import annotations

_KEY = "tenant = ? AND root = ? AND branch = ?"

# --------------------------------------------------------------------------------------------- names and branches

FIND = "SELECT home, branch FROM conversation WHERE tenant = ? AND root = ? AND name = ?"
NAMES = "SELECT name FROM conversation WHERE tenant = ?"
TAKE_NAME = """
    INSERT INTO conversation (tenant, root, name, home, branch) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (tenant, root, name) DO NOTHING RETURNING branch"""
POINT_NAME = "UPDATE conversation SET branch = ? WHERE tenant = ? AND root = ? AND name = ? RETURNING branch"

DROP_NAME = "DELETE FROM conversation WHERE tenant = ? AND root = ? AND name = ? RETURNING home, branch"
SET_NAME = f"UPDATE branch SET name = ? WHERE {_KEY} AND name = ? RETURNING branch"

NEW_BRANCH = """
    INSERT INTO tree (tenant, root, branches) VALUES (?, ?, 1)
    ON CONFLICT (tenant, root) DO UPDATE SET branches = tree.branches + 1 RETURNING branches"""
ADD_BRANCH = """
    INSERT INTO branch (tenant, root, branch, name, lineage, position, tip, seal, number, record, erased, time)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""
BRANCH = f"SELECT name, lineage, position, tip, seal, number, record, erased FROM branch WHERE {_KEY}"

TREE = "SELECT branch, name FROM branch WHERE tenant = ? AND root = ? ORDER BY branch"

# The three changes of a branch. Each states what it expects to find, and changes nothing if it finds something else.
ADVANCE = f"""
    UPDATE branch SET position = ?, tip = ?, seal = ?, time = ?
    WHERE {_KEY} AND name = ? AND position = ? AND tip = ? AND seal = ? AND number = ? AND record = ? AND erased = ?"""
COMMIT = f"""
    UPDATE branch SET number = ?, record = ?
    WHERE {_KEY} AND name = ? AND number = ? AND record = ? AND erased = ? RETURNING position, tip, seal"""
PUT_TIP = f"UPDATE branch SET position = ?, tip = ?, seal = ?, time = ? WHERE {_KEY}"  # Of a locked branch.
RENAME = f"""
    UPDATE branch SET name = ?
    WHERE {_KEY} AND name = ? AND position = ? AND tip = ? AND number = ? AND record = ? RETURNING lineage, erased"""

# Locks the branch until the transaction ends, so that nothing is erased meanwhile; no row if something was erased.
LOCK_IF_NOT_ERASED = f"UPDATE branch SET erased = erased WHERE {_KEY} AND erased = ? RETURNING number"

# Locks the branch, and returns it as it is then: the writer before is done.
LOCK_BRANCH = f"""
    UPDATE branch SET erased = erased
    WHERE {_KEY} RETURNING name, lineage, position, tip, seal, number, record, erased"""

# ------------------------------------------------------------------------------------------------------- messages

ADD_MESSAGE = """
    INSERT INTO message (tenant, root, branch, position, id, seal, stamp, body_hash, body)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"""
ADD_BODY = """
    INSERT INTO body (tenant, root, hash, body) VALUES (?, ?, ?, ?) ON CONFLICT (tenant, root, hash) DO NOTHING"""
# A large body is looked up, not joined: a planner that expects a small tree would join all of its bodies to each row.
# Its tenant and root are passed again (`rows.with_body`), so that a partitioned table is planned for one partition.
_BODY = """COALESCE(message.body, (
        SELECT body.body FROM body
        WHERE body.tenant = ? AND body.root = ? AND body.hash = message.body_hash))"""
MESSAGES = f"""
    SELECT position, id, seal, stamp, body_hash, {_BODY}
    FROM message WHERE {_KEY} AND position BETWEEN ? AND ? ORDER BY position"""
STAMPS = f"""
    SELECT position, id, stamp, COALESCE(length(message.body), (
        SELECT length(body.body) FROM body
        WHERE body.tenant = ? AND body.root = ? AND body.hash = message.body_hash), 0)
    FROM message WHERE {_KEY} AND position BETWEEN ? AND ? ORDER BY position"""
NEXT_MESSAGES = f"""
    SELECT position, id, seal, stamp, body_hash, {_BODY}
    FROM message WHERE {_KEY} AND position > ? ORDER BY position LIMIT ?"""
# An ordered range of one: else a planner may take the index of ids, and read all messages of the tree for one.
LINK = f"SELECT id, seal FROM message WHERE {_KEY} AND position BETWEEN ? AND ? ORDER BY position"
STAMP = f"SELECT stamp FROM message WHERE {_KEY} AND position BETWEEN ? AND ? ORDER BY position"
ORPHAN_MESSAGES = (
    f"SELECT position FROM message WHERE {_KEY} AND (position < ? OR position > ?) ORDER BY position LIMIT 100"
)

# -------------------------------------------------------------------------------------------- journal and snapshot

ADD_RECORD = "INSERT INTO record (tenant, root, branch, first, id, body) VALUES (?, ?, ?, ?, ?, ?)"
RECORDS = f"SELECT first, id, body FROM record WHERE {_KEY} AND first BETWEEN ? AND ? ORDER BY first"
NEXT_RECORDS = f"SELECT first, id, body FROM record WHERE {_KEY} AND first > ? ORDER BY first LIMIT ?"
RECORD_AT = f"SELECT first, id, body FROM record WHERE {_KEY} AND first BETWEEN ? AND ? ORDER BY first DESC LIMIT 1"
ORPHAN_RECORDS = f"SELECT first FROM record WHERE {_KEY} AND (first < ? OR first > ?) ORDER BY first LIMIT 100"

SNAPSHOT = f"SELECT position, number, hash, body FROM snapshot WHERE {_KEY}"
SAVE_SNAPSHOT = """
    INSERT INTO snapshot (tenant, root, branch, position, number, hash, body, view_hash, view_body)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (tenant, root, branch) DO UPDATE
    SET position = excluded.position, number = excluded.number, hash = excluded.hash, body = excluded.body,
        view_hash = excluded.view_hash, view_body = excluded.view_body"""

SAVED_VIEW = f"SELECT view_hash, view_body FROM snapshot WHERE {_KEY} AND position = ? AND number = ?"
DROP_VIEWS = """
    UPDATE snapshot SET view_hash = NULL, view_body = NULL
    WHERE tenant = ? AND root = ? AND view_body IS NOT NULL"""

# -------------------------------------------------------------------------------------------------------- erasing

# No other writer adds a branch, appends, commits or indexes in this tree until the transaction ends.
LOCK_TREE = "UPDATE tree SET branches = branches WHERE tenant = ? AND root = ? RETURNING branches"
LOCK_BRANCHES = "UPDATE branch SET erased = erased WHERE tenant = ? AND root = ? RETURNING branch"
FAMILIES = "SELECT branch, lineage FROM branch WHERE tenant = ? AND root = ? ORDER BY branch"
FACTS = f"""
    SELECT position, id, stamp, CASE WHEN body IS NULL OR length(body) > 0 THEN 1 ELSE 0 END
    FROM message WHERE {_KEY} AND position > ? ORDER BY position LIMIT ?"""
ALL_RECORDS = f"SELECT first, body FROM record WHERE {_KEY} AND first > ? ORDER BY first LIMIT ?"
SNAPSHOTS = "SELECT branch, body FROM snapshot WHERE tenant = ? AND root = ?"
# Then it is added again without its body: SQLite frees a page when rows leave it, not when they shrink.
DROP_MESSAGE = f"DELETE FROM message WHERE {_KEY} AND position = ?"
ERASE_STAMP = f"UPDATE message SET stamp = ? WHERE {_KEY} AND position = ?"
DROP_RECORD = f"DELETE FROM record WHERE {_KEY} AND first = ?"
ERASE_SNAPSHOT = f"UPDATE snapshot SET hash = ?, body = ? WHERE {_KEY}"
SNAPSHOT_HASHES = "SELECT branch, hash FROM snapshot WHERE tenant = ? AND root = ?"
DROP_SNAPSHOT = f"DELETE FROM snapshot WHERE {_KEY}"
HEADS = "SELECT branch, position, number, erased FROM branch WHERE tenant = ? AND root = ? ORDER BY branch"
LARGE_BODIES = f"""
    SELECT position, body_hash FROM message
    WHERE {_KEY} AND position > ? AND body IS NULL ORDER BY position LIMIT ?"""
DROP_BODY = "DELETE FROM body WHERE tenant = ? AND root = ? AND hash = ?"
# NULL for a text that stays. No other column changes: the run may have written it since.
ERASE_RUN = """
    UPDATE run SET task = COALESCE(?, task), result = COALESCE(?, result), reason = COALESCE(?, reason)
    WHERE tenant = ? AND root = ? AND id = ?"""
ERASE_STEP = """
    UPDATE step SET input = COALESCE(?, input), output = COALESCE(?, output), error = COALESCE(?, error)
    WHERE tenant = ? AND root = ? AND run = ? AND number = ?"""
DROP_BODIES = """
    DELETE FROM body WHERE tenant = ? AND root = ? AND hash NOT IN (
        SELECT body_hash FROM message WHERE tenant = ? AND root = ? AND body IS NULL AND body_hash IS NOT NULL)"""
TREES_WITH_BODIES = "SELECT DISTINCT tenant, root FROM body ORDER BY tenant, root"
LAST_ERASURE = "SELECT COALESCE(MAX(number), 0) FROM erasure WHERE tenant = ? AND root = ?"
SET_ERASED = "UPDATE branch SET erased = ? WHERE tenant = ? AND root = ?"
ADD_ERASURE = """
    INSERT INTO erasure (tenant, root, number, time, who, reason, name, handles, messages, edits, runs, steps)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""
ERASURES = """
    SELECT number, time, who, reason, name, handles, messages, edits, runs, steps
    FROM erasure WHERE tenant = ? AND root = ? ORDER BY number"""

# --------------------------------------------------------------------------------------------------------- search

MARK = f"SELECT position, version FROM indexed WHERE {_KEY}"
ADD_MARK = "INSERT INTO indexed (tenant, root, branch, position, version) VALUES (?, ?, ?, ?, ?)"
MOVE_MARK = f"UPDATE indexed SET position = ? WHERE {_KEY}"
DROP_MARK = f"DELETE FROM indexed WHERE {_KEY}"
ADD_WORDS = "INSERT INTO said (tenant, root, branch, bucket, first, last, body) VALUES (?, ?, ?, ?, ?, ?, ?)"
NEWEST_WORDS = f"SELECT first, last, body FROM said WHERE {_KEY} AND bucket = ? ORDER BY first DESC LIMIT 1"
# Runs from a position on, up to another one.
WORDS = f"""
    SELECT first, last, body FROM said
    WHERE {_KEY} AND bucket = ? AND last >= ? AND first <= ? ORDER BY first"""
BUCKETS = f"SELECT DISTINCT bucket FROM said WHERE {_KEY} AND last >= ? AND first <= ? ORDER BY bucket"
SET_WORDS = f"UPDATE said SET last = ?, body = ? WHERE {_KEY} AND bucket = ? AND first = ?"
DROP_WORDS = f"DELETE FROM said WHERE {_KEY} AND bucket = ? AND first = ?"
DROP_ALL_WORDS = f"DELETE FROM said WHERE {_KEY}"

# ---------------------------------------------------------------------------------------------------- runs and steps

# A separate query: a distributed database does not allow a subquery in this insert.
NEXT_RUN = "SELECT COALESCE(MAX(number), 0) + 1 FROM run WHERE tenant = ? AND root = ?"
PUT_RUN = """
    INSERT INTO run (tenant, root, id, agent, conversation, parent, state, task, result, reason, turns,
        input, cache_read, cache_write, output, reasoning, cost, begun, ended, number)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (tenant, root, id) DO UPDATE
    SET agent = excluded.agent, conversation = excluded.conversation, parent = excluded.parent, state = excluded.state,
        task = excluded.task, result = excluded.result, reason = excluded.reason, turns = excluded.turns,
        input = excluded.input, cache_read = excluded.cache_read, cache_write = excluded.cache_write,
        output = excluded.output, reasoning = excluded.reasoning, cost = excluded.cost, begun = excluded.begun,
        ended = excluded.ended"""
RUNS = """
    SELECT id, agent, conversation, parent, state, task, result, reason, turns,
        input, cache_read, cache_write, output, reasoning, cost, begun, ended
    FROM run WHERE tenant = ? AND root = ? ORDER BY number, id"""
PUT_STEP = """
    INSERT INTO step (tenant, root, run, number, kind, name, call, state, input, output, error, message, turn, begun,
        ended)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (tenant, root, run, number) DO UPDATE
    SET kind = excluded.kind, name = excluded.name, call = excluded.call, state = excluded.state,
        input = excluded.input, output = excluded.output, error = excluded.error, message = excluded.message,
        turn = excluded.turn, begun = excluded.begun, ended = excluded.ended"""
STEPS = """
    SELECT run, number, kind, name, call, state, input, output, error, message, turn, begun, ended
    FROM step WHERE tenant = ? AND root = ? AND run = ? AND number > ? ORDER BY number"""

# --------------------------------------------------------------------------------------------------------- claims

TAKE_LOCK = """
    INSERT INTO claim (tenant, root, branch, owner, beats) VALUES (?, ?, ?, ?, 1)
    ON CONFLICT (tenant, root, branch) DO UPDATE SET owner = excluded.owner, beats = claim.beats + 1
    WHERE claim.owner = excluded.owner OR (claim.owner = ? AND claim.beats = ?)
    RETURNING owner, beats"""
LOCK_HOLDER = f"SELECT owner, beats FROM claim WHERE {_KEY}"
# Locks the row until the owner's write is committed, so that an agent that takes over reads it.
HEARTBEAT = f"UPDATE claim SET beats = beats + 1 WHERE {_KEY} AND owner = ? RETURNING beats"
DROP_LOCK = f"DELETE FROM claim WHERE {_KEY} AND owner = ?"

# -------------------------------------------------------------------------------------------------------- catalog

PUT_PROMPT = """
    INSERT INTO prompt (tenant, root, name, text, description, models) VALUES (?, ?, ?, ?, ?, ?)
    ON CONFLICT (tenant, root, name) DO UPDATE
    SET text = excluded.text, description = excluded.description, models = excluded.models"""
PUT_ACTION = """
    INSERT INTO action (tenant, root, name, description, parameters, default_compact_prompt) VALUES (?, ?, ?, ?, ?, ?)
    ON CONFLICT (tenant, root, name) DO UPDATE
    SET description = excluded.description, parameters = excluded.parameters,
        default_compact_prompt = excluded.default_compact_prompt"""
PUT_BINDING = """
    INSERT INTO binding (tenant, root, agent, action, result_expiration_turns, result_expiration_mode, compact_mode,
        compact_length, compact_prompt)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (tenant, root, agent, action) DO UPDATE
    SET result_expiration_turns = excluded.result_expiration_turns,
        result_expiration_mode = excluded.result_expiration_mode, compact_mode = excluded.compact_mode,
        compact_length = excluded.compact_length, compact_prompt = excluded.compact_prompt"""

PROMPTS = "SELECT name, text, description, models FROM prompt WHERE tenant = ? AND root = ?"
ACTIONS = """
    SELECT name, description, parameters, COALESCE(default_compact_prompt, '')
    FROM action WHERE tenant = ? AND root = ?"""
BINDINGS = """
    SELECT agent, action, result_expiration_turns, result_expiration_mode, compact_mode, compact_length,
        COALESCE(compact_prompt, '')
    FROM binding WHERE tenant = ? AND root = ?"""

DROP_PROMPT = "DELETE FROM prompt WHERE tenant = ? AND root = ? AND name = ? RETURNING name"
DROP_ACTION = "DELETE FROM action WHERE tenant = ? AND root = ? AND name = ? RETURNING name"
DROP_BINDING = "DELETE FROM binding WHERE tenant = ? AND root = ? AND agent = ? AND action = ? RETURNING agent"

# ----------------------------------------------------------------------------------------------------- migrations

MIGRATION_TABLE = """
    CREATE TABLE IF NOT EXISTS migration (
        version BIGINT PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL, applied BIGINT NOT NULL
    )"""
MIGRATIONS = "SELECT version, name, checksum FROM migration ORDER BY version"
ADD_MIGRATION = "INSERT INTO migration (version, name, checksum, applied) VALUES (?, ?, ?, ?)"


_HAS_WORD = " AND (name LIKE ? ESCAPE '\\' OR lower(name) LIKE ? ESCAPE '\\')"
"""Databases differ in the lower case of other letters than A to Z, so the word as it is written fits too."""


def recent(words: int) -> str:
    """Return the statement for a page of a tenant's conversations whose names contain so many words."""
    return f"""
    SELECT name, position, number, time FROM branch WHERE tenant = ?{_HAS_WORD * words}
    ORDER BY time DESC, root, branch LIMIT ? OFFSET ?"""


def count_names(words: int) -> str:
    """Return the statement for the number of a tenant's conversations whose names contain so many words."""
    return f"SELECT count(*) FROM branch WHERE tenant = ?{_HAS_WORD * words}"


def locate(count: int) -> str:
    """Return the query for messages whose ids begin with one of `count` prefixes of eight bytes."""
    marks = ", ".join("?" * count)
    return f"SELECT id, branch, position FROM message WHERE tenant = ? AND root = ? AND substr(id, 1, 8) IN ({marks})"
