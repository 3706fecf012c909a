"""A server process that is stopped in order, killed on demand, and cleaned up at the end."""

from __future__ import annotations

import atexit
import random
import shutil
import signal
import socket
import subprocess
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import Self

_STOP_SECONDS = 60  # guessed
# Below are the ports of many known services.
_FIRST_PORT, _TRIES = 20_000, 100
# Ends the server and removes its folders when the standard input closes: when the process that started it has died
# without a chance to do so. After ten seconds it is killed: a zombie that nobody collects looks alive for ever.
_WATCH = """
server=$1; shift
read -r _
kill -INT "$server" && for _ in $(seq 100); do kill -0 "$server" 2>/dev/null || break; sleep 0.1; done &&
    kill -KILL "$server" 2>/dev/null
rm -rf -- "$@"
"""


class ServerProcess(ABC):
    """What the embedded servers share; `start()` and the `log` file are theirs."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._watch: subprocess.Popen[bytes] | None = None
        self._temporary: list[Path] = []

    @property
    @abstractmethod
    def log(self) -> Path:
        """The server's log file."""

    @property
    def pid(self) -> int:
        """The process id. Raises RuntimeError where the server was never started."""
        if self._process is None:
            raise RuntimeError("the server was not started")
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether the server's process is there."""
        return self._process is not None and self._process.poll() is None

    @abstractmethod
    def start(self) -> Self:
        """Start the server, on the data it had before if any, and return once it takes connections."""

    def kill(self) -> None:
        """End the server by SIGKILL, as a crash would; `start()` recovers it."""
        if self._process is not None and self.running:
            self._process.kill()
            self._process.wait()
        self._gone()

    def close(self) -> None:
        """End the server and remove what of it is temporary; by force, as some take more than a minute to stop."""
        self.kill()
        atexit.unregister(self.close)
        for folder in self._temporary:
            shutil.rmtree(folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _launch(self, command: Sequence[str | Path], options: Mapping[str, Any]) -> None:
        self._gone()
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for the program that started it, which then stops it in its order
                **options,
            )
        watch = ["sh", "-c", _WATCH, "watch", str(self._process.pid), *map(str, self._temporary)]
        self._watch = subprocess.Popen(
            watch,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        atexit.register(self.close)

    def _signal(self, number: signal.Signals) -> None:
        """Send the signal and wait for the end, which is by force after a minute."""
        if self._process is not None and self.running:
            self._process.send_signal(number)
            try:
                self._process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.kill()
        self._gone()

    def _gone(self) -> None:
        """Forget a process that has ended, before its number can become another's."""
        self._process = None
        if self._watch is not None:
            self._watch.kill()
            self._watch.communicate()
            self._watch = None

    def _folder(self, prefix: str) -> Path:
        """A new temporary folder that other accounts can pass through, but not list."""
        folder = Path(tempfile.mkdtemp(prefix=prefix))
        folder.chmod(0o711)
        self._temporary.append(folder)
        return folder

    def _log_tail(self) -> str:
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines() if self.log.exists() else []
        return "\n".join(lines[-15:])


def free_port() -> int:
    """A TCP port of 127.0.0.1 that nobody listens on, nor will a connection get it before a server does."""
    for port in random.SystemRandom().sample(_ports(), _TRIES):  # which nobody seeds
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise OSError(f"each of {_TRIES} ports of 127.0.0.1 is in use")


def _ports() -> range:
    """Ports that the system gives to no connection; those that it gives where it gives nearly all."""
    try:
        first, last = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text(encoding="ascii").split())
    except (OSError, ValueError):  # no Linux: others begin at 49152
        first, last = 32768, 60999
    return range(_FIRST_PORT, first) if first >= _FIRST_PORT + 2 * _TRIES else range(first, last)
