-- What a tenant has set up for its agents. `root` is one number for all of it (see catalog.py).

CREATE TABLE prompt (
    tenant TEXT NOT NULL,
    root BIGINT NOT NULL,
    name TEXT NOT NULL CHECK (name <> ''),
    text TEXT NOT NULL,
    description TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (tenant, root, name)
);

-- `parameters` is a JSON Schema, or ''.
CREATE TABLE action (
    tenant TEXT NOT NULL,
    root BIGINT NOT NULL,
    name TEXT NOT NULL CHECK (name <> ''),
    description TEXT NOT NULL DEFAULT '',
    parameters TEXT NOT NULL DEFAULT '',
    default_compact_prompt TEXT,
    PRIMARY KEY (tenant, root, name),
    FOREIGN KEY (tenant, root, default_compact_prompt) REFERENCES prompt (tenant, root, name)
);

-- Which agent has which action, and what becomes of the action's results. Turns: how many model calls see a result before
-- it leaves; NULL is for it never does.
CREATE TABLE binding (
    tenant TEXT NOT NULL,
    root BIGINT NOT NULL,
    agent TEXT NOT NULL CHECK (agent <> ''),
    action TEXT NOT NULL,
    result_expiration_turns BIGINT,
    result_expiration_mode TEXT NOT NULL DEFAULT 'none',
    compact_mode TEXT,
    compact_length BIGINT,
    compact_prompt TEXT,
    PRIMARY KEY (tenant, root, agent, action),
    FOREIGN KEY (tenant, root, action) REFERENCES action (tenant, root, name),
    FOREIGN KEY (tenant, root, compact_prompt) REFERENCES prompt (tenant, root, name),
    CONSTRAINT turns_are_none_or_more CHECK (result_expiration_turns IS NULL OR result_expiration_turns >= 0),
    CONSTRAINT mode_is_known CHECK (result_expiration_mode IN ('none', 'remove', 'compact')),
    CONSTRAINT compact_mode_is_known CHECK (compact_mode IS NULL OR compact_mode IN ('first_chars', 'summary')),
    CONSTRAINT compact_length_is_more_than_none CHECK (compact_length IS NULL OR compact_length > 0),
    CONSTRAINT compact_says_in_which_way CHECK (result_expiration_mode <> 'compact' OR compact_mode IS NOT NULL),
    CONSTRAINT first_chars_says_how_many CHECK (
        compact_mode IS NULL OR compact_mode <> 'first_chars' OR compact_length IS NOT NULL
    ),
    CONSTRAINT only_compact_says_how CHECK (
        result_expiration_mode = 'compact'
        OR (compact_mode IS NULL AND compact_length IS NULL AND compact_prompt IS NULL)
    )
);
