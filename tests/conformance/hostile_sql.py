"""SQL that a signal must not bring: it runs a second statement, leaves its place, or writes, in some database."""

from __future__ import annotations


def conditions(delete: str) -> list[str]:
    """Conditions; `delete` is a statement that removes rows, with which most of them end."""
    return [
        f"1=1); {delete}; SELECT 1 WHERE (1=1",
        f"1=1)\n{delete}\nSELECT 1 WHERE (1=1",
        f"1=1; {delete}",
        f"1=1 {delete}",
        f"1=1) EXEC('{delete}') SELECT 1 WHERE (1=1",
        f"1=1 THEN 1 END; {delete}; SELECT CASE WHEN 1=1",
        f"1=1 /* ); {delete}; --",
        f"1=1 -- \r); {delete}; --",
        f"'a' = 'a\\'); {delete}; --'",
        f'"id" = 1 OR [a]]); {delete}; --] = 1',
        f"EXISTS ({delete} OUTPUT deleted.*)",
        f"EXISTS (SELECT * FROM OLD TABLE ({delete}))",
        f"EXISTS (WITH gone AS ({delete} RETURNING 1) SELECT * FROM gone)",
        "EXISTS (SELECT 1 INTO stolen)",
        "1=1) OR (1=1",
        "1=1 UNION SELECT 1",
        "note = 'x",
        "f(" * 200 + "1" + ")" * 200 + " = 1",
        "SELECT 1",
    ]


def odd_conditions(delete: str) -> list[str]:
    """Conditions that servers read in different ways, and that one with read-only transactions may take."""
    return [
        f"1=1 /* /* */ ); {delete}; -- */",
        f"'a' = 'a\u02bc); {delete}; --'",
        "1=1 OR 'a' = 'a\u2019'",
        "1=1\u00a0OR 1=1",
        "{fn USER()} = 'a'",
    ]


def selects(table: str, delete: str) -> list[str]:
    """Whole SELECTs of a table, by its quoted name."""
    return [
        f"SELECT * FROM {table}; {delete}",
        f"SELECT * FROM {table}\n{delete}",
        f"SELECT * FROM {table} WHERE 1=1 {delete}",
        f"SELECT * FROM {table}) AS x; {delete}; SELECT * FROM (SELECT * FROM {table}",
        f"SELECT * FROM {table}) x\n{delete}\nSELECT * FROM (SELECT * FROM {table}",
        f"SELECT * FROM {table} EXEC('{delete}')",
        f"SELECT * FROM {table} -- \r; {delete}",
        f"SELECT * FROM ({delete} OUTPUT deleted.*) AS x",
        f"SELECT * FROM OLD TABLE ({delete})",
        f"WITH gone AS ({delete} RETURNING 1) SELECT {table}.* FROM {table}, gone",
        f"SELECT * INTO stolen FROM {table}",
        f"BEGIN TRANSACTION; {delete}; COMMIT",
        delete,
    ]


def odd_selects(table: str, delete: str) -> list[str]:
    """SELECTs as the conditions of `odd_conditions`."""
    return [f"SELECT * FROM {table} WHERE {condition}" for condition in odd_conditions(delete)]
