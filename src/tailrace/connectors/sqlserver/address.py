"""Finds the server: the port of a named instance, and the address that answers of a host that has several."""

from __future__ import annotations

import queue
import socket
import threading
from contextlib import suppress

from tailrace.config import Config
from tailrace.config.options.databases import DATABASE_HOSTNAME, DATABASE_PORT
from tailrace.connectors.sqlserver.options import DATABASE_INSTANCE, DRIVER_LOGIN_TIMEOUT

# SQL Server Browser, which knows the ports of named instances ([MC-SQLR]).
_BROWSER_PORT, _BROWSER_S, _ASKED = 1434, 1.0, 0x04
_LONGEST_S = 15


def host_of(config: Config) -> str:
    """The host, and the instance unless a port is given, which decides then."""
    host, instance = config[DATABASE_HOSTNAME], config[DATABASE_INSTANCE]
    return f"{host}\\{instance}" if instance and not config.is_given(DATABASE_PORT) else host


def port_of(config: Config) -> int | None:
    """The port; that of a named instance as SQL Server Browser says it, None if it does not answer."""
    instance = config[DATABASE_INSTANCE]
    if not instance or config.is_given(DATABASE_PORT):
        return config[DATABASE_PORT]
    with suppress(OSError, ValueError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as browser:
        browser.settimeout(_BROWSER_S)
        browser.sendto(bytes([_ASKED]) + instance.encode(), (config[DATABASE_HOSTNAME], _BROWSER_PORT))
        words = browser.recv(1 << 12)[3:].decode(errors="replace").split(";")
        return int(words[words.index("tcp") + 1])
    return None


def answering(config: Config) -> tuple[str, int] | None:
    """The address that answers first where the host has several; None for one address, or if none answers.

    The listener of an availability group has an address in each subnet, and answers at one of them. FreeTDS tries one
    after the other, each until the time limit of the login.
    """
    port, host = port_of(config), config[DATABASE_HOSTNAME]
    try:
        infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM) if port is not None else []
    except OSError:
        return None
    addresses = list(dict.fromkeys(str(each[4][0]) for each in infos))
    if port is None or len(addresses) < 2:
        return None
    patience = config[DRIVER_LOGIN_TIMEOUT] or _LONGEST_S
    answers: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    for address in addresses:
        threading.Thread(target=_try, args=(address, port, patience, answers), daemon=True).start()
    first = next((each for each in (answers.get() for _ in addresses) if each is not None), None)
    return None if first is None else (first, port)


def _try(address: str, port: int, patience: float, answers: queue.SimpleQueue[str | None]) -> None:
    try:
        with socket.create_connection((address, port), patience):
            answers.put(address)
    except OSError:
        answers.put(None)
