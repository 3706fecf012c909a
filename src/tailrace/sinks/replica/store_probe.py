"""Asks the object store of a replica whether it is there, within seconds: for a run and for `tailrace status`."""

from __future__ import annotations

from collections.abc import Mapping

from deltalake.exceptions import DeltaError
from deltalake.fs import DeltaStorageHandler
from pyarrow.fs import PyFileSystem

from tailrace.sinks.replica.failures import said


class StoreProbe:
    """Implements Probe for a root in an object store."""

    def __init__(self, root: str, storage_options: Mapping[str, str]) -> None:
        self._root, self._options = root, dict(storage_options)

    def look(self, seconds: float) -> tuple[str, bool] | None:
        """See Probe. It asks for one file, once, and unlike DeltaTable.is_deltatable lets other threads run."""
        limit = f"{max(1, int(seconds))}s"
        limits = {"timeout": limit, "connect_timeout": limit, "retry_timeout": limit, "max_retries": "0"}
        try:
            store = DeltaStorageHandler(self._root, {**self._options, **limits})
            PyFileSystem(store).get_file_info(["_tailrace"])
        except (DeltaError, OSError, ValueError) as error:
            return f"the replica's storage {self._root} does not answer: {said(error)}", True
        return None
