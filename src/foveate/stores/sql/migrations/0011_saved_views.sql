-- What the view of a snapshot shows, so that a conversation opens without reading its messages one by one. It belongs to
-- the snapshot with the same position and number. Every erasure and every release deletes it. It may be lost at any time.
CREATE TABLE saved_view (
    tenant TEXT NOT NULL,
    root BIGINT NOT NULL,
    branch BIGINT NOT NULL,
    position BIGINT NOT NULL,
    number BIGINT NOT NULL,
    hash BLOB NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (tenant, root, branch)
);
