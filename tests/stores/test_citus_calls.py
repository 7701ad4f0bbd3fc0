"""The calls that distribute the tables over a Citus cluster, checked by the rules of Citus.

No registry that tests could use has the extension. A function of its name stands in for it: it looks at the real
tables of a real server, and refuses what the manual of Citus says that it refuses.
"""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("psycopg_pool", reason="psycopg is not installed (the extra `postgres`)")

import psycopg
from postgres_schemas import execute, taken_apart

from foveate.stores.postgres import PostgresStore
from foveate.stores.postgres.dialect import distributing, tables
from foveate.stores.sql.migrate import TABLES

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "reference" / "citus.md"

CITUS = """
CREATE TABLE distributed (name regclass PRIMARY KEY, beside regclass NOT NULL);
CREATE FUNCTION create_distributed_table(
    named regclass, cut_by text, colocate_with text DEFAULT 'default', shard_count int DEFAULT NULL
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE cut smallint; wrong text;
BEGIN
    IF EXISTS (SELECT FROM distributed d WHERE d.name = named) THEN
        RAISE EXCEPTION 'table % is already distributed', named;
    END IF;
    SELECT attnum INTO STRICT cut FROM pg_attribute WHERE attrelid = named AND attname = cut_by AND attnotnull;
    SELECT i.indexrelid::regclass::text INTO wrong FROM pg_index i
    WHERE i.indrelid = named AND i.indisunique AND NOT cut = ANY (i.indkey::smallint[]);
    IF FOUND THEN
        RAISE EXCEPTION 'cannot create constraint: % does not include the distribution column', wrong;
    END IF;
    SELECT conname INTO wrong FROM pg_constraint c
    WHERE c.conrelid = named AND c.contype = 'f' AND c.confrelid NOT IN (SELECT d.name FROM distributed d);
    IF FOUND THEN
        RAISE EXCEPTION '%: referenced table must be a distributed table or a reference table', wrong;
    END IF;
    SELECT conname INTO wrong FROM pg_constraint c
    WHERE c.conrelid = named AND c.contype = 'f' AND NOT EXISTS (
        SELECT FROM unnest(c.conkey, c.confkey) AS pair (ours, theirs)
        JOIN pg_attribute a ON a.attrelid = c.confrelid AND a.attnum = pair.theirs
        WHERE pair.ours = cut AND a.attname = cut_by);
    IF FOUND THEN
        RAISE EXCEPTION '%: foreign keys must include the distribution column in the same place', wrong;
    END IF;
    SELECT conname INTO wrong FROM pg_constraint c
    WHERE c.conrelid = named AND c.contype = 'f' AND (c.confdeltype IN ('n', 'd') OR c.confupdtype IN ('n', 'd', 'c'));
    IF FOUND THEN
        RAISE EXCEPTION '%: what it does on delete or update is not supported', wrong;
    END IF;
    IF EXISTS (SELECT FROM pg_trigger t WHERE t.tgrelid = named AND NOT t.tgisinternal) THEN
        RAISE EXCEPTION 'triggers are not supported on distributed tables';
    END IF;
    IF colocate_with <> 'none' AND colocate_with::regclass NOT IN (SELECT d.name FROM distributed d) THEN
        RAISE EXCEPTION 'relation % is not distributed', colocate_with;
    END IF;
    INSERT INTO distributed VALUES (named, CASE colocate_with WHEN 'none' THEN named ELSE colocate_with::regclass END);
END $$"""


def test_every_table_is_distributed_with_the_first(postgres_url: str) -> None:
    PostgresStore(postgres_url).close()
    execute(postgres_url, CITUS)
    schema = taken_apart(postgres_url)[1]
    for call in distributing(schema, 64):
        execute(postgres_url, call)
    rows = execute(postgres_url, "SELECT name::text, beside::text FROM distributed")
    assert dict(rows) == dict.fromkeys(TABLES, "conversation")
    with PostgresStore(postgres_url) as store:  # Only the table of migrations is not distributed.
        assert store.names("acme") == []


@pytest.mark.parametrize(
    ("statement", "refused"),
    [
        ("CREATE TABLE more (root BIGINT NOT NULL, a BIGINT PRIMARY KEY)", "more_pkey does not include"),
        ("CREATE TABLE more (a BIGINT)", "no rows"),
        (
            "CREATE TABLE more (root BIGINT NOT NULL, tenant TEXT, id TEXT, run TEXT, "
            "FOREIGN KEY (tenant, root, run) REFERENCES prompt (tenant, root, name))",
            "referenced table must be a distributed table",
        ),
    ],
)
def test_stand_in_refuses_what_citus_refuses(postgres_url: str, statement: str, refused: str) -> None:
    PostgresStore(postgres_url).close()
    execute(postgres_url, CITUS)
    execute(postgres_url, statement)
    with pytest.raises(psycopg.Error, match=refused):
        execute(postgres_url, "SELECT create_distributed_table('more', 'root', colocate_with => 'none')")


def test_referenced_tables_come_first() -> None:
    order = tables()
    assert sorted(order) == sorted(TABLES)
    assert order[0] == "conversation"
    assert order.index("prompt") < order.index("action") < order.index("binding")


def test_schema_with_an_odd_name_is_quoted_twice() -> None:
    named = """'"it''s ""my"" own".conversation'"""
    assert distributing('it\'s "my" own')[0] == (
        f"SELECT create_distributed_table({named}, 'root', colocate_with => 'none');"
    )


def test_page_about_citus_has_the_calls_as_they_are() -> None:
    assert "\n".join(distributing("foveate", 64)) in PAGE.read_text("utf-8")
