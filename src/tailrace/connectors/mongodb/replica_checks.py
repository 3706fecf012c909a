"""Names in advance what keeps a replica from being equal to its collections, or makes it so later."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tailrace.config import Config
from tailrace.connectors.finding import Finding
from tailrace.connectors.mongodb.client import Client
from tailrace.connectors.mongodb.options import (
    CAPTURE_MODE,
    CAPTURE_MODE_FULL_UPDATE_TYPE,
    CURSOR_OVERSIZE_HANDLING_MODE,
    CURSOR_OVERSIZE_SKIP_THRESHOLD,
    CURSOR_PIPELINE,
)
from tailrace.model.table import TableId

_SHOWN = 5  # guessed


def replica_findings(client: Client, config: Config, tables: Sequence[TableId]) -> Iterator[Finding]:
    """What a replica of these collections is to be told, by the configuration and by the collections' options."""
    mode = config[CAPTURE_MODE]
    if "update_full" not in mode:
        what = f"with capture.mode={mode} updates have no document, so that each one is looked up when the log is read"
        yield Finding("updates", True, what)
    elif config[CAPTURE_MODE_FULL_UPDATE_TYPE] == "post_image":
        yield from _without_images(client, tables)
    if config[CURSOR_PIPELINE] is not None:
        yield Finding(
            "cursor.pipeline",
            None,
            "what its stages leave out or alter is so in the replica as well; collections that are dropped, renamed or "
            "replaced may be noticed by the catalogue alone, and are then read again",
            "leave it out; collection.include.list and field.exclude.list choose what a replica has",
        )
    if config[CURSOR_OVERSIZE_HANDLING_MODE] == "skip":
        size = config[CURSOR_OVERSIZE_SKIP_THRESHOLD]
        yield Finding(
            "cursor.oversize.handling.mode",
            None,
            f"changes of documents of more than {size:,} bytes are left out, so that the replica keeps what they were",
            "set it to split (servers from 6.0.9 on)",
        )


def _without_images(client: Client, tables: Sequence[TableId]) -> Iterator[Finding]:
    without = [table for table in tables if not keeps_images(client, table)]
    if not without:
        return
    names = ", ".join(map(str, without[:_SHOWN])) + (f" and {len(without) - _SHOWN} more" if without[_SHOWN:] else "")
    what = f"without post-images, updated documents are looked up, so that they may be newer than the update: {names}"
    yield Finding("post-images", None, what, keeping_images(without[0]))


def keeping_images(table: TableId) -> str:
    """The command by which a collection keeps its documents before and after changes."""
    return f'db.runCommand({{collMod: "{table.table}", changeStreamPreAndPostImages: {{enabled: true}}}})'


def keeps_images(client: Client, table: TableId) -> bool:
    """Whether a collection keeps its documents before and after changes."""
    facts: Mapping[str, Any] = next(iter(client[table.database].list_collections(filter={"name": table.table})), {})
    return bool(facts.get("options", {}).get("changeStreamPreAndPostImages", {}).get("enabled"))
