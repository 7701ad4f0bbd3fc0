-- What the view of a snapshot shows, so that a conversation opens without reading its messages one by one. Every erasure
-- and every release deletes it. It may be lost at any time. The hash is that of the stored bytes.
ALTER TABLE snapshot ADD COLUMN view_hash BLOB;
ALTER TABLE snapshot ADD COLUMN view_body BLOB;
