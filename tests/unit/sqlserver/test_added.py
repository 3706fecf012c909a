"""Which columns statements have added."""

from __future__ import annotations

import pytest

from tailrace.connectors.sqlserver.added import added_columns


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("ALTER TABLE dbo.people ADD city varchar(20)", {"city"}),
        (
            "alter table people add City varchar(20) DEFAULT ('x, y'), [post code] decimal(5, 2)",
            {"city", "post code"},
        ),
        ("ALTER TABLE people ADD a int CONSTRAINT d DEFAULT 5 WITH VALUES, b int", {"a", "b"}),
        ("ALTER TABLE people ADD CONSTRAINT pk PRIMARY KEY (id)", set()),
        ("ALTER TABLE people ADD PRIMARY KEY (id), extra int", {"extra"}),
        ("ALTER TABLE people ADD [primary] int", {"primary"}),
        ("ALTER TABLE people -- ADD ssn int\n ADD /* ssn, */ city int", {"city"}),
        ("ALTER TABLE people ALTER COLUMN name varchar(50)", set()),
        ("ALTER TABLE people DROP COLUMN ssn", set()),
        ("ALTER TABLE people DROP COLUMN IF EXISTS ssn, city", set()),
        (
            "ALTER TABLE t DROP CONSTRAINT c; ALTER TABLE t ADD x int; ALTER TABLE t ADD y int",
            {"x", "y"},
        ),
        ('ALTER TABLE people ADD "odd ""name""" int', {'odd "name"'}),
        ("ALTER TABLE people ADD [a]]b] int", {"a]b"}),
        ("ALTER TABLE people REBUILD", set()),
    ],
)
def test_columns_are_found_in_a_statement(command: str, expected: set[str]) -> None:
    assert added_columns([command]) == expected


def test_a_column_that_is_dropped_and_added_again_is_not_new() -> None:
    assert added_columns(["ALTER TABLE t DROP COLUMN ssn", "ALTER TABLE t ADD ssn int, city int"]) == {"city"}
