"""A package of one's own with entry points, as users install it: a module and its metadata on sys.path."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from tailrace.config import entrypoints


@pytest.fixture
def own_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of the path that holds the package `ownership`, see CODE; more may be written there."""
    (tmp_path / "ownership.py").write_text(textwrap.dedent(CODE), encoding="utf-8")
    metadata = tmp_path / "ownership-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: ownership\nVersion: 1\n", encoding="utf-8")
    (metadata / "entry_points.txt").write_text(textwrap.dedent(ENTRY_POINTS), encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    entrypoints.load.cache_clear()
    yield tmp_path
    entrypoints.load.cache_clear()


ENTRY_POINTS = """
    [tailrace.snapshotters]
    flags = ownership:Flags
    [tailrace.snapshot_locks]
    share = ownership:share
    [tailrace.snapshot_queries]
    latest = ownership:latest
    [tailrace.converters]
    isbn = ownership:isbn
    broken = ownership:missing
"""

CODE = '''
    """A snapshotter, a lock, a query and a converter."""

    import pyarrow as pa
    import pyarrow.compute as pc

    from tailrace.connectors.converters import Conversion
    from tailrace.model.schema import ConnectSchema


    class Flags:
        """Answers by the letters of a property that means nothing else."""

        def __init__(self, properties):
            self.letters = properties["snapshot.new.tables"]

        def should_snapshot_data(self, offset_exists, snapshot_in_progress):
            return ("a" if offset_exists else "f") in self.letters

        def should_stream(self):
            return "s" in self.letters

        def should_snapshot_on_data_error(self):
            return "e" in self.letters


    def share(properties):
        return lambda timeout_ms, table: None if '"u"' in table else f"LOCK TABLE {table} IN SHARE MODE"


    def latest(properties):
        def query(table, columns):
            return None if '"u"' in table else f"SELECT {', '.join(columns)} FROM {table} WHERE id > 1 ORDER BY id DESC"

        return query


    def isbn(settings):
        schema = ConnectSchema("string", name=settings["schema.name"], version=1)

        def convert(text):
            if pc.any(pc.equal(text, "bad")).as_py():
                raise KeyError("no ISBN")
            return pc.replace_substring(text, "-", "")

        def ask(column):
            if column.table == settings["table"] and column.name == "isbn" and column.type_name == "character varying":
                return Conversion(schema.with_(parameters=(("length", str(column.length)),)), pa.string(), convert)
            if column.name == "short":
                return Conversion(schema, pa.int32(), convert)
            return "what?" if column.name == "odd" else None

        return ask
'''
