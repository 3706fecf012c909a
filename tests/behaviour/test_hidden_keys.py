"""Key columns that values leave out: keys have them, required where the table says so."""

from __future__ import annotations

from typing import Any

import pytest

from tests.behaviour.capture import capturing
from tests.conftest import Database


def test_a_key_column_that_values_leave_out_is_required_in_the_log_as_well(database: Database) -> None:
    database.execute("CREATE TABLE t (id int, k text DEFAULT 'x', v int, PRIMARY KEY (id, k))")
    with capturing(database, **{"column.exclude.list": "public.t.k"}) as capture:
        capture.step()
        database.execute("INSERT INTO t VALUES (1, 'a', 2)")
        (row,) = capture.step()
    found: Any = row["schema"].column("k").schema
    assert (found.optional, found.default) == (False, "x")


@pytest.mark.parametrize("faults", [False, True])
def test_a_key_column_that_values_leave_out_is_read_from_tables(database: Database, faults: bool) -> None:
    database.execute(
        "CREATE TABLE t (id int, k text, v int, PRIMARY KEY (id, k))",
        "INSERT INTO t VALUES (1, 'a', 2)",
        "CREATE TABLE u (id int PRIMARY KEY)",
        "INSERT INTO u VALUES (3)",
    )
    given = {"column.exclude.list": "public.t.k,public.u.id", "compat.faults": str(faults).lower()}
    with capturing(database, **given) as capture:
        rows = capture.step()
    # The reference does not select it, unless values have no column at all.
    assert [row["after"] for row in rows] == [{"id": 1, "v": 2, "k": None if faults else "a"}, {"id": 3}]
