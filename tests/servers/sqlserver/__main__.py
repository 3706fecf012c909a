"""Runs the test double until it is interrupted: python -m tests.servers.sqlserver --port 1433 --dir data."""

from __future__ import annotations

import argparse
import signal
import threading
from pathlib import Path

from .server import SqlServer


def main() -> None:
    """Start the double and wait."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.servers.sqlserver", description=__doc__.splitlines()[0] if __doc__ else ""
    )
    parser.add_argument("--port", type=int, default=1433)
    parser.add_argument("--dir", type=Path, help="where data is kept; without it, it is gone at the end")
    parser.add_argument("--password", default="Double-Password-1", help="of the administrator sa")
    parser.add_argument("--encryption", choices=["off", "login", "required"], default="login")
    parser.add_argument("--utc-offset", type=int, default=0, metavar="MINUTES", help="of the server's local time")
    parser.add_argument(
        "--capture-interval", type=float, default=0.1, metavar="SECONDS", help="between two scans of the capture job"
    )
    parser.add_argument(
        "--idle-seconds", type=float, default=300, help="after which the capture job notes an idle database"
    )
    arguments = parser.parse_args()
    server = SqlServer(
        arguments.dir,
        port=arguments.port,
        password=arguments.password,
        encryption=arguments.encryption,
        utc_offset=arguments.utc_offset,
        capture_interval=arguments.capture_interval,
        idle_seconds=arguments.idle_seconds,
    )
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    with server:
        print(f"SQL Server test double on {server.host}:{server.port}, user {server.user}", flush=True)
        ended.wait()


if __name__ == "__main__":
    main()
