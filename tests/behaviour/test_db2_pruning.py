"""Changes of Db2 that are removed, or never captured, before they are read: none of that is silent. On the stand-in."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from tailrace.capture.capture import Capture
from tailrace.connectors import registry
from tailrace.errors import OffsetError
from tests.behaviour.stepping import Stepped
from tests.behaviour.test_db2 import CHANGES, insert, streaming, values_of, write
from tests.conformance.db2 import REGISTER, Db2Source
from tests.servers.db2.server import Db2


@pytest.fixture
def source(db2: Db2, request: pytest.FixtureRequest) -> Iterator[Db2Source]:
    source = Db2Source(db2, f"P{abs(hash(request.node.name)) % 10**8}")
    source.create("orders")
    write(source, insert(source, 1, 10))
    source.settle()
    yield source
    db2.without_apply()
    source.close()


def restart(stream: Stepped) -> None:
    stream.capture.close()
    stream.capture = Capture(registry.named("db2").load().connector(stream.config))


def warnings(stream: Stepped) -> str:
    connector = registry.named("db2").load().connector(stream.config)
    try:
        return " ".join(connector.watch(stream.config).warnings)
    finally:
        connector.close()


def empty(source: Db2Source) -> None:
    source.settle()
    source.run("DELETE FROM ASNCDC.IBMSNAP_UOW", f"DELETE FROM {CHANGES.format(source.schema)}")


def test_rows_that_are_deleted_by_hand_are_noticed(source: Db2Source) -> None:
    with streaming(source) as stream:
        stream.step()
        write(source, insert(source, 2, 20))
        empty(source)
        write(source, insert(source, 3, 30))
        with pytest.raises(OffsetError, match="emptied by hand or by a cold start"):
            stream.step()


def test_a_cold_start_is_noticed(source: Db2Source) -> None:
    with streaming(source) as stream:
        stream.step()
        write(source, insert(source, 2, 20))
        assert source.server.services("cold") == "asncap was started cold"
        write(source, insert(source, 3, 30))
        with pytest.raises(OffsetError, match=r"were not captured, or pruned|cold start"):
            stream.step()


def test_what_apply_has_copied_before_the_pipeline_is_noticed_when_it_starts(source: Db2Source) -> None:
    with streaming(source) as stream:
        stream.step()
        write(source, insert(source, 2, 20))
        source.settle()
        source.server.apply(source.schema, "orders")
        write(source, insert(source, 3, 30))
        restart(stream)
        with pytest.raises(OffsetError, match="that Apply has copied and that were not read"):
            stream.step()


def test_a_database_that_was_restored_and_written_on_is_noticed(source: Db2Source) -> None:
    """Its log goes on behind the position, and has not the unit of work that was read there."""
    with streaming(source) as stream:
        stream.step()
        write(source, insert(source, 2, 20))
        assert values_of(stream.step()[0]) == [("c", None, 20)]
        source.settle()
        source.run(
            "DELETE FROM ASNCDC.IBMSNAP_UOW WHERE IBMSNAP_COMMITSEQ = (SELECT MAX(IBMSNAP_COMMITSEQ) FROM "
            "ASNCDC.IBMSNAP_UOW)"
        )
        write(source, insert(source, 3, 30))
        restart(stream)
        with pytest.raises(OffsetError, match=r"is gone\. The database was restored"):
            stream.step()


def test_pruning_after_apply_of_what_was_read_is_no_loss(source: Db2Source) -> None:
    with streaming(source) as stream:
        for number in range(2, 6):
            write(source, insert(source, number, number))
            assert values_of(stream.step()[0]) == [("c", None, number)]
            source.server.apply(source.schema, "orders")
            assert source.run("SELECT COUNT(*) FROM ASNCDC.IBMSNAP_UOW") == [(0,)]
        restart(stream)
        write(source, insert(source, 9, 9))
        assert values_of(stream.step()[0]) == [("c", None, 9)]


@pytest.mark.parametrize("state", ["I", "S"])
def test_a_registration_that_stops_is_said_and_its_table_incomplete(
    source: Db2Source, state: str, caplog: pytest.LogCaptureFixture
) -> None:
    place = f"WHERE SOURCE_TABLE = 'orders' AND SOURCE_OWNER = '{source.schema}'"
    with streaming(source) as stream, caplog.at_level(logging.WARNING):
        stream.step()
        source.run(f"UPDATE {REGISTER} SET STATE = '{state}', STATE_INFO = 'ASN0073E' {place}")
        source.server.services("reinit")
        write(source, insert(source, 2, 20))
        source.create("other")
        assert values_of(stream.step()[0]) == []
        words = {"I": "is inactive", "S": "was stopped by an error"}[state]
        assert words in warnings(stream)
        source.run(f"UPDATE {REGISTER} SET STATE = 'A' {place}")
        source.server.services("reinit")
        write(source, insert(source, 3, 30))
        assert values_of(stream.step()[0]) == [("c", None, 30)]
        assert "was not captured for a while" in caplog.text
