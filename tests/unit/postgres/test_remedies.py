"""Remedies for what the server refuses, by its states."""

from __future__ import annotations

import psycopg
import pytest

from tailrace.connectors.postgres.config import resolve
from tailrace.connectors.postgres.server.connect import refused
from tailrace.connectors.postgres.snapshot.selects import refusals
from tailrace.errors import SourceError
from tailrace.model.table import TableId

CONFIG = resolve({"database.hostname": "h", "database.user": "u", "database.dbname": "d", "topic.prefix": "t"})
TABLE = TableId("d", "public", "t")


def test_a_full_table_of_locks_names_its_setting() -> None:
    with (
        pytest.raises(SourceError, match=r"public\.t: .*out of shared memory") as caught,
        refusals(CONFIG, TABLE, None),
    ):
        raise psycopg.errors.OutOfMemory("out of shared memory")
    assert "raise max_locks_per_transaction" in (caught.value.remedy or "")
    assert "raise max_locks_per_transaction" in (refused("public.t", "out of shared memory", "53200").remedy or "")
