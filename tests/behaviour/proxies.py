"""A proxy between a pipeline and its server that stops to forward, as broken networks do: without a word."""

from __future__ import annotations

import select
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

# `stall`: nothing is taken any more. `drop`: all is taken, and thrown away. Neither end hears of it.
FORWARD, STALL, DROP = "forward", "stall", "drop"
_LOOK_SECONDS = 0.02


@dataclass
class Link:
    """One connection through the proxy."""

    client: socket.socket
    server: socket.socket
    mode: str = FORWARD
    sent: int = 0


@dataclass
class Proxy:
    """Forwards to a port; `mode` is what connections begin with.

    `watch` sees what a client sends before it is forwarded. A connection ends after `cut` bytes of the server.
    """

    port: int
    mode: str = FORWARD
    links: list[Link] = field(default_factory=list)
    watch: Callable[[Link, bytes], None] = lambda link, data: None
    cut: int | None = None

    def __post_init__(self) -> None:
        self.target, self.ended = self.port, threading.Event()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def spoil(self, mode: str, *, for_all: bool = False) -> None:
        """Treat all connections there are this way from now on, and all that come as well if `for_all`."""
        for link in list(self.links):
            link.mode = mode
        if for_all:
            self.mode = mode

    def heal(self) -> None:
        """Forward connections that come from now on. Those that were spoilt stay as they are."""
        self.mode = FORWARD

    def close(self) -> None:
        """End all connections."""
        self.ended.set()
        self.listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        # An error of a thread would be one of whatever test runs then.
        with suppress(OSError), client, socket.create_connection(("127.0.0.1", self.target)) as server:
            link = Link(client, server, self.mode)
            self.links.append(link)
            try:
                while not self.ended.is_set() and self._relay(link):
                    pass
            finally:
                self.links.remove(link)

    def _relay(self, link: Link) -> bool:
        """Forward what there is, for a moment; False when either end has closed."""
        ready, _, _ = select.select([link.client, link.server], [], [], _LOOK_SECONDS)
        if link.mode == STALL:
            self.ended.wait(_LOOK_SECONDS)
            return True
        for source in ready:
            data = source.recv(65536)
            if not data:
                # A proxy that forwards nothing does not tell of an end either.
                return link.mode != FORWARD and not self.ended.wait(_LOOK_SECONDS)
            if source is link.client:
                self.watch(link, data)
            else:
                data = data if self.cut is None else data[: self.cut - link.sent]
                link.sent += len(data)
            if link.mode == FORWARD:
                (link.server if source is link.client else link.client).sendall(data)
        return self.cut is None or link.sent < self.cut


@contextmanager
def proxy(port: int) -> Iterator[Proxy]:
    """A proxy that forwards, for now."""
    opened = Proxy(port)
    try:
        yield opened
    finally:
        opened.close()
