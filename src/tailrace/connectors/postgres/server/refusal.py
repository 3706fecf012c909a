"""Asks a server why it takes no connections: libpq passes on its words, in any language, and drops the SQLSTATE."""

from __future__ import annotations

import socket
import ssl
import struct
from collections.abc import Mapping
from typing import Any

_PROTOCOL, _TLS_REQUEST = 196608, struct.pack("!ii", 8, 80877103)
_SECONDS, _MOST_BYTES = 10, 30_000


def state_of_refusal(given: Mapping[str, Any]) -> str | None:
    """The SQLSTATE with which the server refuses a connection of libpq's parameters before it asks who it is for.

    So it refuses while it starts, stops or recovers, and when all its places are taken. None if it does not, or does
    not answer. Nothing is sent but the names of role and database, in TLS if the server has it.
    """
    try:
        with _opened(str(given["host"]), int(given["port"])) as plain, _secured(plain, given) as talking:
            names = ("user", "database", "replication")
            known = {"user": given["user"], "database": given["dbname"], "replication": given.get("replication")}
            sent = "".join(f"{name}\0{known[name]}\0" for name in names if known[name] is not None) + "\0"
            talking.sendall(struct.pack("!ii", 8 + len(sent.encode()), _PROTOCOL) + sent.encode())
            return _state(talking)
    except OSError:
        return None


def _opened(host: str, port: int) -> socket.socket:
    if not host.startswith("/"):
        return socket.create_connection((host, port), _SECONDS)
    local = socket.socket(socket.AF_UNIX)
    local.settimeout(_SECONDS)
    local.connect(f"{host}/.s.PGSQL.{port}")
    return local


def _secured(plain: socket.socket, given: Mapping[str, Any]) -> socket.socket:
    """TLS without proof of who the server is: nothing follows that only it may know."""
    if given["sslmode"] == "disable" or plain.family == socket.AF_UNIX:
        return plain
    plain.sendall(_TLS_REQUEST)
    if plain.recv(1) != b"S":
        return plain
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context.wrap_socket(plain)


def _state(talking: socket.socket) -> str | None:
    """Field C of an ErrorResponse."""
    with talking.makefile("rb") as stream:
        head = stream.read(5)
        if head[:1] != b"E" or len(head) < 5:
            return None
        body = stream.read(min(struct.unpack("!i", head[1:])[0] - 4, _MOST_BYTES))
    return next((field[1:].decode() for field in body.split(b"\0") if field.startswith(b"C")), None)
