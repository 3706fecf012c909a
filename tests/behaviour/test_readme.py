"""The first steps of README and of the PostgreSQL page, run as written by a user who has just prepared a server."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq

from tests.conftest import Database
from tests.unit.test_docs import blocks


def shown(marker: str) -> str:
    """The block that is marked so."""
    (block,) = [block for block in blocks() if block.marker == marker]
    return block.text


def ran(script: str, folder: Path, password: str) -> str:
    """What a script prints that runs in a folder and a process of its own."""
    environment = {**os.environ, "PGPASSWORD": password, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=folder, env=environment, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_first_five_minutes(database: Database, tmp_path: Path) -> None:
    role = f"cdc_{database.name}"
    database.execute(
        "CREATE TABLE orders (id bigint PRIMARY KEY, item text)",
        "CREATE TABLE customers (id bigint PRIMARY KEY)",
        "INSERT INTO orders VALUES (1, 'tea'), (2, 'salt')",
    )
    statements = re.sub(r"\bcdc\b", role, shown("server")).split(";\n")
    database.execute(*filter(str.strip, statements))
    script = shown("source")
    for there, here in (
        ('"localhost"', repr(database.server.host)),
        ('"5432"', repr(str(database.server.port))),
        ('"cdc"', repr(role)),
        ('dbname", "shop"', f'dbname", {database.name!r}'),
        ('"shop_events"', repr(f"slot_{database.name}")),
    ):
        assert script.count(there) == 1
        script = script.replace(there, here)
    try:
        assert "shop.public.orders" in ran(script, tmp_path, "change me")
        database.execute("UPDATE orders SET item = 'rice' WHERE id = 1", "DELETE FROM orders WHERE id = 2")
        ran(script, tmp_path, "change me")
    finally:
        database.execute(f"DROP OWNED BY {role}", f"DROP ROLE {role}")
    events = pq.read_table(tmp_path / "events").to_pylist()
    found = sorted((event["op"], event["key"], event["after"]) for event in events)
    assert found == [
        ("d", '{"id":2}', None),
        ("r", '{"id":1}', '{"id":1,"item":"tea"}'),
        ("r", '{"id":2}', '{"id":2,"item":"salt"}'),
        ("u", '{"id":1}', '{"id":1,"item":"rice"}'),
    ]
