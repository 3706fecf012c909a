"""Stores in the checkpoint what continuous reconciliation has verified of a replica's tables."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import KW_ONLY, asdict, dataclass, field
from datetime import datetime, timezone
from typing import Any

from tailrace.connectors.snapshots import PagingKey
from tailrace.errors import TailraceError
from tailrace.pipeline.checkpoint import SparkAloneError, file_system

FILE = "verified.json"


@dataclass(frozen=True, slots=True)
class Verified:
    """A table. Times are in seconds since 1970, by the clock of the machine that compares.

    `up_to`: what was committed before that time is in the replica, which a pass through the whole table has shown that
    began then and ended at `ended`; None before there is one. `begun` is when the present pass began, `key` the columns
    in whose order it goes (empty: the table is read as a whole), `after` the key up to which it has come (None: it
    begins), with so many `rows` of about `total`. `is_faultless`: nothing differed in it so far. `differs` says what
    differed last, and `since` when that was noticed. `why` says what keeps the table from being verified, and
    `not_compared` names columns that are not compared, or what of them is not.
    """

    _: KW_ONLY
    up_to: float | None = None
    ended: float | None = None
    begun: float | None = None
    key: tuple[str, ...] = ()
    after: PagingKey | None = None
    rows: int = 0
    total: int = 0
    is_faultless: bool = True
    differs: str = ""
    since: float | None = None
    why: str = ""
    not_compared: Mapping[str, str] = field(default_factory=dict)

    @property
    def percent(self) -> int:
        """How much of the table the present pass has compared."""
        if not self.total:
            return 0 if self.up_to is None else 100
        return min(100, 100 * self.rows // self.total)

    def keyed(self, key: tuple[str, ...]) -> Verified:
        """The same for a pass in the order of a key, which begins again if it was another's."""
        return self if key == self.key else Verified.again(self, key)

    @staticmethod
    def again(verified: Verified, key: tuple[str, ...]) -> Verified:
        """A pass that begins, after what is known of those before."""
        kept = {name: getattr(verified, name) for name in ("up_to", "ended", "differs", "since", "why", "not_compared")}
        return Verified(key=key, **kept)


def iso(at: float | None) -> str | None:
    """A time in ISO 8601."""
    return None if at is None else datetime.fromtimestamp(at, timezone.utc).isoformat(timespec="seconds")


def to_text(tables: Mapping[str, Verified]) -> str:
    """The text of the file; the keys are the tables' unique names."""
    return json.dumps({"version": 1, "tables": {name: asdict(each) for name, each in sorted(tables.items())}})


def from_text(text: str) -> dict[str, Verified]:
    """The inverse of `to_text`. Raises ValueError, KeyError and TypeError for another text."""
    return {name: _verified(node) for name, node in json.loads(text)["tables"].items()}


def _verified(node: Mapping[str, Any]) -> Verified:
    after = None if node["after"] is None else tuple(node["after"])
    return Verified(**{**node, "after": after, "key": tuple(node["key"])})


def stored(checkpoint: str) -> dict[str, Verified]:
    """What a checkpoint (a path or URL) holds; nothing where Spark alone can read it. Raises TailraceError."""
    try:
        filesystem, root = file_system(checkpoint)
        with filesystem.open_input_stream(f"{root}/{FILE}") as stream:
            return from_text(stream.read().decode())
    except (FileNotFoundError, SparkAloneError):
        return {}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise TailraceError(
            f"what was verified cannot be read: {error}",
            where=f"{checkpoint}/{FILE}",
            remedy="run this as the user who runs the pipeline; delete a file that is damaged: all is verified again",
        ) from error
