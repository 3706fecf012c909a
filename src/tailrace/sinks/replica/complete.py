"""Writes the table beside a replica that says for jobs behind it up to which time the tables are complete."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import pyarrow as pa

from tailrace.sinks.replica.failures import failed, is_failure
from tailrace.sinks.replica.table import Mark
from tailrace.sinks.replica.target import Target
from tailrace.sinks.replica.upkeep import Upkeep

# Beside the tables of a replica; the pipelines that write there have a table each.
FOLDER = "_complete"
# In the column of the tables, the pipeline as a whole.
ALL = "*"
SCHEMA = pa.schema([("table", pa.string()), ("complete_until", pa.timestamp("us", "UTC"))])
_MARK = Mark(None, -1, "{}")
# Readers that are at it need the rows of before for a while.
_UPKEEP = Upkeep(retention_minutes=60)


def write(root: str, options: Mapping[str, str], pipeline: str, until: Mapping[str, datetime | None]) -> str | None:
    """Replace the rows of a pipeline's table; `until` is by the tables' names, and ALL. Raises SinkError.

    Returns how its maintenance failed, if it did. While nothing is known no table is made.
    """
    place = Target(f"{root.rstrip('/')}/{FOLDER}", pipeline, options)
    rows = pa.table({"table": list(until), "complete_until": list(until.values())}, schema=SCHEMA)
    try:
        table = place.open()
        if table is None and not any(until.values()):
            return None
        if table is None:
            place.lake.create(place.name, rows, _MARK, _UPKEEP.kept_seconds)
            return None
        table.overwrite(rows, _MARK, reshapes=False)
    except BaseException as error:
        if not is_failure(error):
            raise
        raise failed(place, error, where=place.uri) from error
    return _UPKEEP.after(place, pipeline, table.version)
