-- What agents did: runs, and the steps they are made of. They belong to a tree of forks, not to a branch of it: whatever
-- becomes of a conversation, they stay. What may be long (BLOB) is packed as bodies are.

-- `number` counts the runs of a tree as they were begun.
CREATE TABLE run (
    tenant TEXT NOT NULL,
    root BIGINT NOT NULL,
    id TEXT NOT NULL,
    number BIGINT NOT NULL,
    agent TEXT NOT NULL,
    conversation TEXT NOT NULL,
    parent TEXT NOT NULL,
    state TEXT NOT NULL,
    task BLOB NOT NULL,
    result BLOB NOT NULL,
    reason BLOB NOT NULL,
    turns BIGINT NOT NULL,
    input BIGINT,
    cache_read BIGINT,
    cache_write BIGINT,
    output BIGINT,
    reasoning BIGINT,
    cost DOUBLE PRECISION,
    begun BIGINT NOT NULL,
    ended BIGINT NOT NULL,
    PRIMARY KEY (tenant, root, id)
);

CREATE INDEX run_by_number ON run (tenant, root, number);

CREATE TABLE step (
    tenant TEXT NOT NULL,
    root BIGINT NOT NULL,
    run TEXT NOT NULL,
    number BIGINT NOT NULL,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    call TEXT NOT NULL,
    state TEXT NOT NULL,
    input BLOB NOT NULL,
    output BLOB NOT NULL,
    error BLOB NOT NULL,
    message TEXT NOT NULL,
    turn BIGINT NOT NULL,
    begun BIGINT NOT NULL,
    ended BIGINT NOT NULL,
    PRIMARY KEY (tenant, root, run, number)
);
