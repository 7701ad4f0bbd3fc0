-- What was erased, when, by whom and why; not a word of what it said.

-- The number of the newest erasure in the branch's tree: a plan that was made before it must not be committed.
ALTER TABLE branch ADD COLUMN erased BIGINT NOT NULL DEFAULT 0;

-- `handles` names what was asked for in the conversation `name`. The rest are counts.
CREATE TABLE erasure (
    tenant TEXT NOT NULL,
    root BIGINT NOT NULL,
    number BIGINT NOT NULL,
    time BIGINT NOT NULL,
    who TEXT NOT NULL,
    reason TEXT NOT NULL,
    name TEXT NOT NULL,
    handles TEXT NOT NULL,
    messages BIGINT NOT NULL,
    edits BIGINT NOT NULL,
    runs BIGINT NOT NULL,
    steps BIGINT NOT NULL,
    PRIMARY KEY (tenant, root, number)
);
