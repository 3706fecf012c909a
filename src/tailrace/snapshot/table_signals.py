"""Reads new signals of the signal table. Whatever is wrong with that table is logged once, and never stops the log."""

from __future__ import annotations

import logging

from tailrace.connectors.signal import Mark, Signal
from tailrace.connectors.signal_source import NotSignals
from tailrace.connectors.snapshot_ports import OnDemandSnapshots
from tailrace.errors import TailraceError

log = logging.getLogger(__name__)

Handled = tuple[Mark, ...] | None
"""Marks of the signals that were carried out; None as long as it is not known which rows a pipeline began with."""


class TableSignals:
    """Reads the signal table of one pipeline."""

    def __init__(self, server: OnDemandSnapshots) -> None:
        self._server = server
        self._logged: str | None = None
        self._gone: frozenset[Mark] = frozenset()

    def at_first(self) -> Handled:
        """The rows that are there already, which a pipeline that begins does not carry out."""
        return self.new(None)[1]

    def new(self, handled: Handled) -> tuple[list[Signal], Handled]:
        """The signals that are not handled yet, in order, and what is handled with them.

        Raises the error of a lost connection alone. Any other is logged once, until it goes away or is another one.
        """
        # The id of a row that was seen to be gone can be used again. Marks without a row's version do not tell.
        marks_left = tuple(mark for mark in handled or () if mark not in self._gone)
        try:
            new, marks = self._server.new_signals(marks_left)
        except Exception as error:
            if self._server.failures.is_lost(error):
                raise
            self._log(error)
            return [], () if handled is None and isinstance(error, NotSignals) else handled
        self._logged = None
        present = {id_ for id_, _ in marks}
        self._gone = frozenset(mark for mark in handled or () if mark[0] not in present)
        return ([], marks) if handled is None else (new, marks)

    def _log(self, error: Exception) -> None:
        said = str(error).replace("\n  Remedy:", "; remedy:")
        if said != self._logged:
            is_known = isinstance(error, TailraceError)
            log.error(
                "no signal is read from the signal table until this is put right: %s", said, exc_info=not is_known
            )
        self._logged = said
