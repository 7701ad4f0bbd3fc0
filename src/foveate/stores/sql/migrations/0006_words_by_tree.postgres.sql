-- The index of words: what messages say, cut into words, to be found again by a GIN index (see postgres/words.py). All of
-- it is thrown away and made again: the old table's key was a place that one row counted for everybody.
DROP TABLE IF EXISTS said;
DELETE FROM indexed;
DELETE FROM tree WHERE tenant = '' AND root = 0;

-- `place` is the number of the branch that stands before each of its words in the index.
CREATE TABLE said (
    tenant TEXT NOT NULL,
    root BIGINT NOT NULL,
    branch BIGINT NOT NULL,
    position BIGINT NOT NULL,
    place BIGINT NOT NULL,
    words TEXT NOT NULL
);

-- A planner takes cutting a text into words for cheap, and would rather do so with all rows that a key leads to than
-- read the index of words. `place` is never below 0; but a search does not say so, and then this key is not open to it.
CREATE UNIQUE INDEX said_key ON said (tenant, root, branch, position) WHERE place >= 0;

-- What is new waits in a list until it is merged, which halves the work; a search reads all of that list, so it is kept
-- an eighth of what the server would let it grow to (in kB).
CREATE INDEX said_words ON said USING gin (
    array_to_tsvector(string_to_array(to_hex(place) || ':' || replace(words, ' ', ' ' || to_hex(place) || ':'), ' '))
) WITH (fastupdate = on, gin_pending_list_limit = 512);

-- Such a key is none to a logical replica, and without one nothing could be deleted here where there is one.
ALTER TABLE said REPLICA IDENTITY FULL;
