"""The requirements of the specification of PostgreSQL for keys, identities and names of tables."""

from __future__ import annotations

import json
import re

import psycopg
import pytest

from tests.behaviour.capture import Capture, capturing
from tests.conftest import Database
from tests.seeds.postgresql import (
    BASE,
    DELETE,
    INSERT,
    UPDATE,
    Record,
    payloads,
    records,
    sample,
)


@pytest.mark.seed("S003-76", "S003-77", "S003-78", "S003-79", "S003-80", "S003-81")
def test_a_key_change_is_a_delete_and_a_create(database: Database, capture: Capture) -> None:
    database.execute(INSERT, "UPDATE customers SET id = 2 WHERE id = 1")
    _, deleted, tombstone, created = records(capture)
    assert [record["key"]["payload"]["id"] for record in (deleted, tombstone, created)] == [1, 1, 2]
    assert [record["value"]["payload"]["op"] for record in (deleted, created)] == ["d", "c"]
    expected = {item["op"]: item["header"] for item in sample(10)}
    headers = {"d": deleted["headers"], "c": created["headers"]}
    other = {"d": 2, "c": 1}
    for op, name in expected.items():
        header = json.loads(headers[op][name])
        assert header == {"id": other[op]}
    assert created["value"]["payload"]["after"]["first_name"] == "Anne"


@pytest.mark.seed("S003-29", "S003-35", "S003-70")
def test_full_identity_gives_whole_old_rows(database: Database, capture: Capture) -> None:
    database.execute(sample(9), INSERT, UPDATE, DELETE)
    _, updated, deleted, _ = payloads(records(capture))
    assert updated["before"]["first_name"] == "Anne"
    assert updated["before"]["email"] == "annek@noanswer.org"
    assert deleted["before"] == {**updated["after"]}


@pytest.mark.seed("S003-36")
def test_index_identity_gives_the_indexs_columns(database: Database, capture: Capture) -> None:
    database.execute(
        "CREATE UNIQUE INDEX by_email ON customers (email)",
        "ALTER TABLE customers REPLICA IDENTITY USING INDEX by_email",
        INSERT,
        "UPDATE customers SET email = 'new' WHERE id = 1",
        DELETE,
    )
    _, updated, deleted, _ = payloads(records(capture))
    assert (updated["op"], updated["before"]["email"]) == ("u", "annek@noanswer.org")
    assert deleted["before"]["email"] == "new"


@pytest.mark.seed("S003-32", "S003-33", "S003-34", "S003-93")
def test_without_an_identity_the_server_refuses_updates_and_deletes(database: Database, capture: Capture) -> None:
    database.execute("CREATE TABLE log (line text)", "CREATE TABLE none (id int PRIMARY KEY)")
    database.execute("ALTER TABLE none REPLICA IDENTITY NOTHING")
    database.execute("INSERT INTO log VALUES ('a')", "INSERT INTO none VALUES (1)")
    for table in ("log", "none"):
        for statement in (f"DELETE FROM {table}", f"UPDATE {table} SET {'line' if table == 'log' else 'id'} = NULL"):
            with pytest.raises(psycopg.Error, match="replica identity"):
                database.execute(statement)
    assert [payload["op"] for payload in payloads(records(capture))] == ["c", "c"]


@pytest.mark.seed("S003-17", "S003-24", "S003-28", "S003-92")
def test_tables_without_a_primary_key(database: Database, capture: Capture) -> None:
    database.execute(
        "CREATE TABLE known (code text NOT NULL UNIQUE, v int)",
        "ALTER TABLE known REPLICA IDENTITY FULL",
        "CREATE TABLE bare (v int)",
        "ALTER TABLE bare REPLICA IDENTITY FULL",
        "INSERT INTO known VALUES ('a', 1)",
        "INSERT INTO bare VALUES (1)",
        "DELETE FROM bare",
    )
    by_table: dict[str, list[Record]] = {}
    for record in records(capture):
        by_table.setdefault(record["topic"].rpartition(".")[2], []).append(record)
    assert by_table["known"][0]["key"]["payload"] == {"code": "a"}
    inserted, deleted, tombstone = by_table["bare"]
    assert inserted["key"] is deleted["key"] is tombstone["key"] is None
    assert deleted["value"]["payload"]["before"] == {"v": 1}


@pytest.mark.seed("S003-11", "S003-12", "S003-21")
def test_topics_are_named_after_the_table(database: Database, capture: Capture) -> None:
    database.execute(INSERT)
    (record,) = records(capture)
    assert record["topic"] == "PostgreSQL_server.public.customers"
    assert record["partition"] is None


@pytest.mark.seed("S003-13", "S003-14", "S003-15")
def test_names_are_made_legal_for_avro(database: Database, caplog: pytest.LogCaptureFixture) -> None:
    database.execute('CREATE TABLE "a-b" (id int PRIMARY KEY)', 'CREATE TABLE "a_b" (id int PRIMARY KEY)')
    with capturing(database, compat__version="1.7", **{**BASE, "database__server__name": "1st-server"}) as capture:
        capture.step()
        database.execute('INSERT INTO "a-b" VALUES (1)', 'INSERT INTO "a_b" VALUES (1)')
        found = records(capture)
    names = [record["value"]["schema"]["name"] for record in found]
    assert all(re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z0-9_]+)*", name) for name in names)
    assert names[0] == names[1] == "_1st_server.public.a_b.Envelope"
    with capturing(database, **{**BASE, "database__server__name": "1st-server", "slot__name": "plain"}) as capture:
        capture.step()
        database.execute('INSERT INTO "a-b" VALUES (2)')
        assert records(capture)[0]["value"]["schema"]["name"] == "1st-server.public.a-b.Envelope"
