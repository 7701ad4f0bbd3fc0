-- How far the words of a branch's messages are indexed, for `search`. `place` is where the index keeps them, in databases
-- that number places; the index itself is each database's own. All of it may be lost at any time, and is made again.
CREATE TABLE indexed (
    tenant TEXT NOT NULL,
    root BIGINT NOT NULL,
    branch BIGINT NOT NULL,
    position BIGINT NOT NULL,
    place BIGINT NOT NULL,
    PRIMARY KEY (tenant, root, branch)
);
