"""Asks the object store of a replica whether it is there, within seconds: for a run and for `tailrace status`."""

from __future__ import annotations

from collections.abc import Mapping

from tailrace.sinks.replica.failures import ERRORS, said
from tailrace.sinks.replica.lakes import lake_at


class StoreProbe:
    """Implements Probe for a root in an object store or a catalog."""

    def __init__(self, root: str, storage_options: Mapping[str, str]) -> None:
        self._root, self._options = root, dict(storage_options)

    def look(self, seconds: float) -> tuple[str, bool] | None:
        """Why the storage cannot be reached, and whether that may pass; None where it answers."""
        try:
            lake_at(self._root, self._options).look(seconds)
        except (*ERRORS, ValueError) as error:
            return f"the replica's storage {self._root} does not answer: {said(error)}", True
        return None
