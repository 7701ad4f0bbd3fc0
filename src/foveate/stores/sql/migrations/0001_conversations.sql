-- Conversations, their branches, messages and journals.
-- Every key begins with the tenant and the root (see lineage.py), so that all of one tree of forks lies together.

-- Which branch a name stands for. The row lies at the name's own root; `home` is the root of the tree it belongs to.
CREATE TABLE conversation (
    tenant TEXT NOT NULL,
    root BIGINT NOT NULL,
    name TEXT NOT NULL,
    home BIGINT NOT NULL,
    branch BIGINT NOT NULL,
    PRIMARY KEY (tenant, root, name)
);

-- How many branches a tree has: the next one is taken from here.
CREATE TABLE tree (
    tenant TEXT NOT NULL,
    root BIGINT NOT NULL,
    branches BIGINT NOT NULL,
    PRIMARY KEY (tenant, root)
);

-- The ends of a branch's three chains, and where it came from (JSON).
CREATE TABLE branch (
    tenant TEXT NOT NULL,
    root BIGINT NOT NULL,
    branch BIGINT NOT NULL,
    name TEXT NOT NULL,
    lineage TEXT NOT NULL,
    position BIGINT NOT NULL,
    tip BLOB NOT NULL,
    seal BLOB NOT NULL,
    number BIGINT NOT NULL,
    record BLOB NOT NULL,
    PRIMARY KEY (tenant, root, branch)
);

-- One message in its place. A small body lies in the row and its hash is left to be computed; a large one lies in `body`,
-- where its hash leads. An erased body is empty and its hash is kept.
CREATE TABLE message (
    tenant TEXT NOT NULL,
    root BIGINT NOT NULL,
    branch BIGINT NOT NULL,
    position BIGINT NOT NULL,
    id BLOB NOT NULL,
    seal BLOB NOT NULL,
    stamp BLOB NOT NULL,
    body_hash BLOB,
    body BLOB,
    PRIMARY KEY (tenant, root, branch, position)
);

-- By the first bytes of the id: enough to find it, and the index stays small.
CREATE INDEX message_by_id ON message (tenant, root, substr(id, 1, 8));

-- Large bodies, once per tree of forks.
CREATE TABLE body (
    tenant TEXT NOT NULL,
    root BIGINT NOT NULL,
    hash BLOB NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (tenant, root, hash)
);

-- The journal. `first` is the number of the record's first edit.
CREATE TABLE record (
    tenant TEXT NOT NULL,
    root BIGINT NOT NULL,
    branch BIGINT NOT NULL,
    first BIGINT NOT NULL,
    id BLOB NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (tenant, root, branch, first)
);

-- The newest saved view of each branch. It may be lost at any time.
CREATE TABLE snapshot (
    tenant TEXT NOT NULL,
    root BIGINT NOT NULL,
    branch BIGINT NOT NULL,
    position BIGINT NOT NULL,
    number BIGINT NOT NULL,
    hash BLOB NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (tenant, root, branch)
);
