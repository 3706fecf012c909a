"""T-SQL that the connector writes around a user's own."""

from __future__ import annotations

import pytest

from tailrace.connectors.sqlserver.statements import derived

ALL = "SELECT * FROM dbo.orders WHERE deleted = 0"


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (ALL, f"({ALL})"),
        (f"{ALL}; ", f"({ALL})"),
        (f"{ALL} order by id DESC", f"({ALL} order by id DESC OFFSET 0 ROWS)"),
        (f"{ALL} ORDER BY ABS(id)", f"({ALL} ORDER BY ABS(id) OFFSET 0 ROWS)"),
        (f"{ALL} ORDER BY id OFFSET 5 ROWS", f"({ALL} ORDER BY id OFFSET 5 ROWS)"),
        ("SELECT TOP 5 * FROM t ORDER BY id", "(SELECT TOP 5 * FROM t ORDER BY id)"),
        (
            "SELECT *, ROW_NUMBER() OVER (ORDER BY id) AS n FROM t",
            "(SELECT *, ROW_NUMBER() OVER (ORDER BY id) AS n FROM t)",
        ),
    ],
)
def test_an_ordered_select_as_a_table(given: str, wanted: str) -> None:
    assert derived(given) == wanted
