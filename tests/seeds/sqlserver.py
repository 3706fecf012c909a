"""The specification of SQL Server: its samples, its requirements S004-1 to S004-153, and a database in its words."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.behaviour.stepping import Record, Stepped
from tests.conformance.sqlserver import ENABLE, SqlServerSource

SAMPLES = Path(__file__).parent / "samples"
DEMANDS = 153
SERVER = "server1"


def seed(*numbers: int) -> pytest.MarkDecorator:
    """The requirements of a test."""
    return pytest.mark.seed(*(f"S004-{number:02}" for number in numbers))


def sample(name: int | str) -> Any:
    """A sample of the document by its number, or by the beginning of its name where a number has several files."""
    (path,) = SAMPLES.glob(f"004-{name:02}-*" if isinstance(name, int) else f"004-{name}*")
    text = path.read_text(encoding="utf-8")
    return json.loads(text) if path.suffix == ".json" else text


@contextmanager
def pipeline(source: SqlServerSource, **properties: str) -> Iterator[Stepped]:
    """A pipeline that has not begun. A name of a property has two underscores for a dot."""
    given = {"topic.prefix": SERVER, **{name.replace("__", "."): value for name, value in properties.items()}}
    stream = Stepped("sqlserver", source, given)
    try:
        yield stream
    finally:
        stream.close()


def enable(source: SqlServerSource, table: str, schema: str = "dbo") -> None:
    """Have a table captured."""
    source.run(ENABLE.format(table).replace("'dbo'", f"'{schema}'"))


def events(stream: Stepped, steps: int = 1) -> list[Record]:
    """The payloads of the next steps' events, without those of the table of signals."""
    found = [each for _ in range(steps) for each in stream.step()[0]]
    return [each for each in found if each["source"]["table"] != "signals"]


def keys(found: list[Record]) -> list[tuple[str, str, int]]:
    """Operation, table and key of events."""
    return [(each["op"], each["source"]["table"], (each["after"] or each["before"])["id"]) for each in found]
