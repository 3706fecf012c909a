"""Every connector configuration that a recording of the reference engine was made with is understood."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tailrace.connectors.postgres.config import resolve
from tailrace.errors import ConfigError

SHARED = Path(os.environ.get("TAILRACE_SHARED", Path(__file__).parents[4] / "shared"))
FILES = sorted((SHARED / "golden" / "postgres").glob("*/connector.json"))
PLACES = {"${host}": "h", "${port}": "5432", "${user}": "u", "${password}": "p", "${dbname}": "d", "${slot}": "s"}


@pytest.mark.skipif(not FILES, reason="the recordings are not here")
def test_configurations_of_the_recordings() -> None:
    refused = {}
    for file in FILES:
        given = json.loads(file.read_text(encoding="utf-8"))["config"]
        try:
            resolve({name: PLACES.get(value, value) for name, value in given.items()})
        except ConfigError as error:
            refused[file.parent.name] = str(error)
    assert set(refused) <= {"column-mask", "column-mask-edge", "snapshot-always", "snapshot-when-needed-restart"}, (
        refused
    )
