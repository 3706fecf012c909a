"""Which snapshots send the structures of their tables."""

from __future__ import annotations

from typing import Any, cast

import pytest

from tailrace.connectors.change_tables.moment import Moment
from tailrace.connectors.change_tables.position import LsnPosition
from tailrace.connectors.change_tables.snapshots import ChangeTableSnapshots
from tailrace.connectors.offset import BEGIN, STREAM, Reached
from tailrace.connectors.shared_log import BEGINS
from tailrace.connectors.sqlserver.config import resolve
from tailrace.connectors.sqlserver.snapshot import DIALECT

CONFIG = resolve({"database.hostname": "h", "database.names": "shop", "topic.prefix": "server1"})
HERE = LsnPosition.of({"shop": "0x05"})


class Server:
    """A server that answers everything with one moment."""

    def ask(self, question: object) -> Moment:
        return Moment(HERE, 0, "moment")


@pytest.mark.parametrize("start", [(BEGIN, None), (STREAM, HERE)])
def test_every_snapshot_sends_structures(start: tuple[str, Any]) -> None:
    phase, position = start
    snapshots = ChangeTableSnapshots(DIALECT, CONFIG, cast("Any", Server()))
    before = Reached("sqlserver-cdc", "s", "p", phase, position=position)
    after = Reached("sqlserver-cdc", "s", "p", "snapshot", log={BEGINS: HERE.to_text()})
    assert snapshots.open_at_log(CONFIG, before, after).tells_structures
