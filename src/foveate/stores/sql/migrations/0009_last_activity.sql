-- When a conversation was last active, for lists: the time of the newest message on the branch, in milliseconds since 1970.
-- It is 0 for a conversation that no message was added to since this migration.
ALTER TABLE branch ADD COLUMN time BIGINT NOT NULL DEFAULT 0;
