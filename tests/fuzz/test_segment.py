"""Bytes of the wire in pieces of any size give the same messages, without keepalives, notices and ends."""

from __future__ import annotations

import socket
import struct
from collections.abc import Generator, Iterator
from contextlib import closing
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.connectors.postgres.log.feed import SocketFeed
from tailrace.connectors.postgres.log.protocol.segment import Segment, descriptions, segment, walk
from tailrace.connectors.postgres.log.refusals import Refused
from tailrace.connectors.postgres.server.silence import Connection
from tests.fuzz import pgoutput_messages as wire
from tests.fuzz.pgoutput_messages import xlog

KEEPALIVE = b"k" + bytes(17)
contents = st.lists(
    st.one_of(st.just(KEEPALIVE), st.binary(max_size=200).map(lambda content: xlog(7, b"I" + content))), max_size=30
)


def framed(kind: bytes, content: bytes) -> bytes:
    return kind + struct.pack(">I", len(content) + 4) + content


def refusal(state: str) -> bytes:
    return framed(b"E", f"SFATAL\0C{state}\0Mended\0\0".encode())


BEGUN = framed(b"W", b"\0\0\0")


class Wire:
    """A socket feed whose server is this test; it takes what was written, `limit` bytes at a time."""

    def __init__(self, begun: bytes = BEGUN) -> None:
        self.server, client = socket.socketpair()
        self.server.sendall(begun)
        pgconn = SimpleNamespace(socket=client.fileno(), ssl_in_use=False)
        connection = SimpleNamespace(pgconn=pgconn, wait=waited)
        try:
            self.feed = SocketFeed(cast("Connection", connection), b"START_REPLICATION")
        except BaseException:
            self.server.close()
            raise
        finally:
            client.close()

    def close(self) -> None:
        self.feed.close()
        self.server.close()

    def all(self, limit: int = 1 << 20) -> tuple[list[bytes], list[bytes]]:
        """Messages and others that have come."""
        messages: list[bytes] = []
        others: list[bytes] = []
        while True:
            before = self.feed.pending
            found, told = self.feed.receive(limit)
            messages += payloads(found)
            others += told
            if found is None and not told and self.feed.pending == before:
                return messages, others


@pytest.fixture
def through() -> Iterator[Wire]:
    with closing(Wire()) as opened:
        yield opened


def waited(gen: Generator[Any, bool, None]) -> None:
    next(gen)
    with pytest.raises(StopIteration):
        gen.send(True)


def payloads(found: Segment | None) -> list[bytes]:
    return [] if found is None else [found.payload(row) for row in range(len(found))]


rows = st.binary(max_size=30).map(lambda content: framed(b"d", xlog(7, b"I" + content)))
look_alikes = st.lists(rows, max_size=3).map(lambda inside: framed(b"d", xlog(7, b"I" + b"".join(inside))))
others = st.sampled_from([framed(b"d", KEEPALIVE), framed(b"N", b"C01000\0\0"), framed(b"c", b"")])


@given(st.lists(rows | look_alikes | others, max_size=20) | st.lists(rows, max_size=20), st.integers(0, 60))
def test_whole_messages_are_found_whatever_is_in_them(messages: list[bytes], missing: int) -> None:
    stream = b"".join(messages)
    size = max(len(stream) - missing, 0)
    bounds = [0]
    for message in messages:
        if bounds[-1] + len(message) > size:
            break
        bounds.append(bounds[-1] + len(message))
    # What lies behind `size` is left from before.
    assert walk(bytearray(stream), size).tolist() == bounds


@settings(deadline=None)
@given(contents, st.integers(1, 300), st.integers(1, 300))
def test_pieces_of_any_size_are_the_same_messages(messages: list[bytes], piece: int, limit: int) -> None:
    at_once = b"".join(framed(b"d", each) for each in messages)
    found, told = list[bytes](), list[bytes]()
    with closing(Wire()) as through:
        for begin in range(0, len(at_once), piece):
            through.server.sendall(at_once[begin : begin + piece])
            more, others = through.all(limit)
            found, told = found + more, told + others
        assert through.feed.pending == 0
    assert found == [each for each in messages if each != KEEPALIVE]
    assert told == [each for each in messages if each == KEEPALIVE]


def test_a_message_larger_than_the_buffer_is_complete(through: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tailrace.connectors.postgres.log.feed.BLOCK_BYTES", 1000)
    large, small = xlog(1, b"I" + bytes(50_000)), xlog(2, b"Iabc")
    through.server.sendall(framed(b"d", small) + framed(b"d", large) + framed(b"d", small))
    assert through.all() == ([small, large, small], [])


def test_what_came_before_an_error_is_read_first(through: Wire) -> None:
    row = xlog(1, b"I")
    through.server.sendall(framed(b"d", row) + refusal("57P01"))
    found, _ = through.feed.receive(1000)
    assert payloads(found) == [row]
    with pytest.raises(psycopg.OperationalError, match="ended"):
        through.feed.receive(1000)


@pytest.mark.parametrize("state", ["42704", "55000", "58P01", "55006"])
def test_an_error_for_good_is_a_refusal(through: Wire, state: str) -> None:
    through.server.sendall(refusal(state))
    with pytest.raises(Refused) as error:
        through.feed.receive(1000)
    assert error.value.state == state


def test_a_stream_that_is_refused_or_cut_at_its_beginning() -> None:
    with pytest.raises(Refused, match="ended"):
        Wire(refusal("55006") + framed(b"Z", b"I"))


def test_a_connection_that_ends_is_an_error_after_its_messages(through: Wire) -> None:
    row = xlog(1, b"I")
    through.server.sendall(framed(b"d", row) + b"d\0\0")
    through.server.close()
    assert payloads(through.feed.receive(1000)[0]) == [row]
    with pytest.raises(psycopg.OperationalError, match="the connection"):
        through.feed.receive(1000)


def test_notices_are_kept_and_other_messages_left_out(through: Wire) -> None:
    row = xlog(1, b"I")
    notice = framed(b"N", b"SWARNING\0C55000\0Mno publication\0\0")
    through.server.sendall(framed(b"d", row) + notice + framed(b"S", b"work_mem\0" + b"1\0") + framed(b"d", row))
    assert through.all() == ([row, row], [])
    assert through.feed.said == {"55000": "no publication"}


def test_a_stretch_ends_at_a_begin_or_a_message_outside_transactions() -> None:
    rows = [wire.begin(100, 0, 1), b"R1234", wire.commit(100, 110, 0), wire.begin(200, 0, 2), wire.commit(200, 220, 0)]
    found = segment([xlog(1, each) for each in rows])
    kinds = found.kinds()
    assert [found.first_from(end, kinds) for end in (50, 101, 200, 201)] == [0, 3, 3, 5]
    assert found.last_commit(kinds) == 220
    before, behind = found.cut(3)
    assert before.last_commit(before.kinds()) == 110
    assert payloads(before) + payloads(behind) == payloads(found)
    assert descriptions(kinds).tolist() == [False, True, False, False, False]
    assert payloads(found.select(np.array([True, False, False, False, True]))) == [
        found.payload(0),
        found.payload(4),
    ]


def test_a_message_cut_short_has_no_kind() -> None:
    found = segment([b"w", xlog(1, b"B")])
    assert found.kinds().tolist() == [0, ord("B")]
    assert found.first_from(0, found.kinds()) == 2
