"""Finds the SQLSTATE of a refused login: libpq passes on the server's text, in any language, but not the SQLSTATE.

The trace that libpq can write of a connection has the SQLSTATE, so the login is tried once more with a trace.
"""

from __future__ import annotations

import os
import re
import select
import sys
import time
from collections.abc import Mapping
from typing import Any

from psycopg import pq
from psycopg.conninfo import make_conninfo

_SECONDS, _MOST_BYTES = 10, 100_000  # guessed
# As a server says that takes no connections yet.
_NOT_READY = "57P03"
# SQLSTATE and message, between other fields.
_REFUSAL = re.compile(r'\tErrorResponse\t .*? C "([0-9A-Z]{5})" M "(.*?)" [A-Za-z] "', re.DOTALL)
# By the server's text. psycopg does not close the stream that it opens for a trace, so each text is traced once.
_known: dict[str, str] = {}
_MOST_KNOWN = 100  # guessed


def state_of_refusal(given: Mapping[str, Any], said: str) -> str | None:
    """The SQLSTATE with which the server refused a connection of libpq's parameters, by what it said.

    If it takes the connection now, it was not ready before (57P03). None if it does not answer, or says something else
    now, and where libpq writes no trace: psycopg has that for Linux alone.
    """
    if said not in _known:
        state, says = _traced(given)
        if says is not None and says not in said:
            return None
        if state is None or says is None or len(_known) >= _MOST_KNOWN:
            return state
        _known[said] = state
    return _known[said]


def _traced(given: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """SQLSTATE and words of the server; no words if it takes the connection."""
    if sys.platform != "linux":
        return None, None
    # In memory: if the server asks for the password as it is, the trace has it.
    trace = os.memfd_create("trace")
    connection = pq.PGconn.connect_start(make_conninfo("", **given).encode())
    try:
        connection.trace(trace)
        ended = _polled(connection)
        connection.untrace()
        if ended == pq.PollingStatus.OK:
            return _NOT_READY, None
        refusals = _REFUSAL.findall(os.pread(trace, _MOST_BYTES, 0).decode(errors="replace"))
        return refusals[-1] if refusals else (None, None)
    finally:
        connection.finish()
        os.close(trace)


def _polled(connection: pq.abc.PGconn) -> pq.PollingStatus:
    """How the login ends, FAILED after some seconds."""
    deadline = time.monotonic() + _SECONDS
    while (status := pq.PollingStatus(connection.connect_poll())) in (
        pq.PollingStatus.READING,
        pq.PollingStatus.WRITING,
    ):
        waiting = select.poll()
        waiting.register(connection.socket, select.POLLIN if status == pq.PollingStatus.READING else select.POLLOUT)
        if not waiting.poll(max(deadline - time.monotonic(), 0) * 1000):
            return pq.PollingStatus.FAILED
    return status
