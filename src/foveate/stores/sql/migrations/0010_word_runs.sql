-- The index of words of every database: runs of consecutive messages with the keys that they contain (postings.py). The
-- indexes of before, which were each database's own, are dropped; the words are indexed again, in steps.
DROP TABLE IF EXISTS said;
DELETE FROM indexed;
DELETE FROM tree WHERE tenant = '' AND root = 0;

-- `bucket` is a part of the keys, or -1 for all keys of the newest messages. `first` and `last` are the positions of the
-- first and the last message of the run.
CREATE TABLE said (
    tenant TEXT NOT NULL,
    root BIGINT NOT NULL,
    branch BIGINT NOT NULL,
    bucket BIGINT NOT NULL,
    first BIGINT NOT NULL,
    last BIGINT NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (tenant, root, branch, bucket, first)
);

-- The version of the keys (words.py) by which a branch is indexed. A branch of another version is indexed again.
ALTER TABLE indexed RENAME COLUMN place TO version;
