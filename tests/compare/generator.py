"""What makes the random scenarios of a database."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol, cast

DATABASES = ("postgres", "mongodb", "sqlserver", "db2")


class Generator(Protocol):
    """The module `tests.compare.<database>.scenarios`."""

    ENGINE: Mapping[str, str]
    """Properties that only the reference engine needs; `${work}` is its folder."""

    CONNECTION: Mapping[str, str]
    """Properties that written scenarios begin with."""

    MARK: str
    """A statement that gives an event with the text `{}`, or nothing; see `marker` below."""

    EXPLAINED: Sequence[tuple[str, str]]
    """Deliberate differences: an expression that the line of a difference contains, and where it is documented."""

    def write(self, seed: int, folder: Path) -> None:
        """Write a scenario into the empty folder, without `expected.jsonl`, as tests/golden/README.md describes it.

        A `marker` in its `scenario.json` says that before the nth `@wait` or `@stop`, and at the end of the workload,
        comes an event with the text `<marker><n>`, which no other event has: the recording goes on when it has come.
        Without it, a recording goes on when no event has come for a while, and on a busy machine that is too early.

        The same seed gives the same files. No value may depend on the clock or on chance in the server (`now()`,
        `random()`), because the workload runs twice: once for the engine and once for the stream.
        """


def generator_of(database: str) -> Generator:
    """The generator of a database. Raises ModuleNotFoundError if there is none."""
    return cast("Generator", importlib.import_module(f"tests.compare.{database}.scenarios"))
