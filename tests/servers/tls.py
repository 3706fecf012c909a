"""A port that shakes hands in TLS and ends the connection then: all that a client sees of a wrong certificate."""

from __future__ import annotations

import socket
import ssl
import threading
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING

import trustme

if TYPE_CHECKING:
    from typing_extensions import Self

_YEAR = timedelta(days=365)


class Authority:
    """An authority, whose certificate is in the file `path`."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        self._authority = trustme.CA()
        self.path = folder / f"{name}.pem"
        self._authority.cert_pem.write_to_path(str(self.path))

    def context(self, *hosts: str, expired: bool = False) -> ssl.SSLContext:
        """What a server for these hosts shakes hands with; an expired certificate ended a year ago."""
        end = datetime.now(timezone.utc) - _YEAR if expired else None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._authority.issue_cert(*hosts, not_after=end).configure_cert(context)
        return context


class TlsPort:
    """Listens on `port` of 127.0.0.1; without a context it answers to everything with a line that is no TLS."""

    def __init__(self, context: ssl.SSLContext | None) -> None:
        self._context = context
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with suppress(OSError), client:
            if self._context is None:
                client.recv(4096)
                client.sendall(b"who are you?\r\n")
            else:
                with self._context.wrap_socket(client, server_side=True) as secure:
                    secure.recv(4096)
