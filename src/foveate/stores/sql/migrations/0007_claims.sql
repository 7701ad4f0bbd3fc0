-- Who is at work in a conversation: one row for a branch while somebody is, and none else. `beats` counts their signs of
-- life, so that no clock of any machine tells who is dead.
CREATE TABLE claim (
    tenant TEXT NOT NULL,
    root BIGINT NOT NULL,
    branch BIGINT NOT NULL,
    owner TEXT NOT NULL,
    beats BIGINT NOT NULL,
    PRIMARY KEY (tenant, root, branch)
);
