"""Runs user-supplied SQL of signals and settings: conditions as one expression, SELECTs as one read-only query.

Three rules hold for every statement that contains such a text. It is sent by the extended protocol, which takes one
statement alone. It runs in a read-only transaction. And before it becomes part of COPY, whose options could name a file
or a program of the server, the server has parsed it as part of a plain SELECT (see decision 22).
"""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg import sql


def condition(text: str) -> sql.Composable:
    """A condition as part of WHERE. It may end in a comment."""
    return sql.SQL(f"({text}\n)")


def subquery(text: str) -> sql.Composable:
    """A SELECT as part of FROM. It may end in a semicolon or a comment."""
    query = text.rstrip("; \t\n")
    return sql.SQL("({}) AS overridden").format(sql.SQL(f"{query}\n"))


def one_statement(connection: psycopg.Connection, query: sql.Composable) -> psycopg.Cursor[Any]:
    """Run a query by the extended protocol, which refuses a second statement."""
    return connection.execute(sql.SQL("{}").format(query), binary=True)  # binary results take that protocol


def check_condition(connection: psycopg.Connection, table: sql.Composable, text: str) -> None:
    """Raise psycopg.Error unless the text is an expression over the table that ends where it should.

    Between WHEN and THEN no parenthesis is open that the text could close, so `true) UNION SELECT ...` is an error.
    """
    one_statement(connection, sql.SQL("SELECT CASE WHEN {}\n THEN 1 END FROM {} LIMIT 0").format(sql.SQL(text), table))
    one_statement(connection, sql.SQL("SELECT 1 FROM {} WHERE {} LIMIT 0").format(table, condition(text)))


def check_select(connection: psycopg.Connection, text: str) -> list[str]:
    """The names of a query's columns. Raise psycopg.Error unless the text is a query."""
    cursor = one_statement(connection, sql.SQL("SELECT * FROM {} LIMIT 0").format(subquery(text)))
    return [column.name for column in cursor.description or ()]


def has_rows(connection: psycopg.Connection, text: str) -> bool:
    """Whether a query has a row."""
    return one_statement(connection, sql.SQL("SELECT 1 FROM {} LIMIT 1").format(subquery(text))).fetchone() is not None
