"""Pipeline files for tests, and what is said of wrong ones."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from tailrace.errors import ConfigError
from tailrace.pipeline.definition import Definition, load

MINIMAL = """
source: {config: {database.hostname: db}}
sink: console
checkpoint: state
"""
# With the properties that PostgreSQL requires.
COMPLETE = MINIMAL.replace(
    "database.hostname: db", "database.hostname: db, database.user: u, database.dbname: d, topic.prefix: t"
)


def written(folder: Path, text: str) -> Definition:
    file = folder / "pipeline.yaml"
    file.write_text(dedent(text), encoding="utf-8")
    return load(file)


def refusal(folder: Path, text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        written(folder, text)
    assert str(folder / "pipeline.yaml") in str(caught.value)
    return str(caught.value)
