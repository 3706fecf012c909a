"""Refuses a second run of a checkpoint: the owner renews a file in its folder, and a new run watches the file.

No clocks are compared. A new run that finds the file reads it again and again: if the content changes, the owner lives
and the new run is refused; if it stays the same for STALE_SECONDS by the new run's own clock, the owner is dead. On one
machine the owner's process itself shows it, at once.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import KW_ONLY, asdict, dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Protocol

from tailrace.errors import ConfigError, TailraceError

log = logging.getLogger(__name__)

RENEW_SECONDS = 10.0  # guessed
STALE_SECONDS = 35.0  # guessed
_LOOK_SECONDS = 0.5  # guessed


class LeaseFile(Protocol):
    """The file of a lease, on any file system. The methods raise TailraceError for what the file system refuses."""

    @property
    def where(self) -> str:
        """Its path, for messages."""

    @property
    def settle_seconds(self) -> float:
        """How long another writer's `create` at the same moment may stay unseen; 0 where only one can succeed."""

    def read(self) -> str | None:
        """The content, None if there is no such file."""

    def create(self, content: str) -> bool:
        """Write a new file; False if there is one."""

    def write(self, content: str) -> None:
        """Write the file, whether there is one or not."""

    def delete(self) -> None:
        """Remove the file."""


@dataclass(frozen=True)
class Owner:
    """Who holds a lease.

    `machine` is equal for two processes only if they share their process ids (it is None where that is unknown);
    `started` distinguishes a process from a later one with the same id. `beat` counts renewals. `caught_up` is when the
    log last ended where the run has read to, in seconds since 1970; None if it does not know. `error` is that of a
    query that is to be started again, without secrets, and `remedy` what helps if it stays. `restarted` has the fields
    of the newest Restarted.
    """

    token: str
    host: str
    machine: str | None
    pid: int
    _: KW_ONLY
    started: str | None
    since: str
    beat: int = 0
    caught_up: float | None = None
    error: str | None = None
    remedy: str | None = None
    restarted: dict[str, Any] | None = None

    @staticmethod
    def me() -> Owner:
        """This process."""
        now = datetime.now(timezone.utc).isoformat(timespec="seconds")
        pid = os.getpid()
        return Owner(uuid.uuid4().hex, socket.gethostname(), _machine(), pid, started=_started(pid), since=now)

    @staticmethod
    def read(content: str) -> Owner | None:
        """The owner that a file names; None for one that is being written or is not a lease."""
        try:
            return Owner(**json.loads(content))
        except (ValueError, TypeError):
            return None

    @property
    def content(self) -> str:
        """What the file holds."""
        return json.dumps(asdict(self))

    def is_alive(self) -> bool | None:
        """Whether the process runs; None if this cannot be known from this machine."""
        if self.machine is None or self.machine != _machine():
            return None
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            pass
        started = _started(self.pid)
        return started is None or self.started is None or started == self.started


class Lease:
    """The right to run one checkpoint, held by this process from `acquire` to `release`."""

    def __init__(self, file: LeaseFile) -> None:
        self._file = file
        self._owner = Owner.me()
        self._ended, self._is_due = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None
        self.lost: TailraceError | None = None

    def acquire(self) -> None:
        """Take the lease, over from an owner that is dead. Raises ConfigError if another run holds it."""
        while not self._file.create(self._owner.content):
            content = self._file.read()
            if content is None:  # released meanwhile
                continue
            if self._is_dead(content):
                self._file.write(self._owner.content)
                break
        if self._file.settle_seconds:
            time.sleep(self._file.settle_seconds)
            content = self._file.read()
            owner = None if content is None else Owner.read(content)
            if owner is None or owner.token != self._owner.token:
                raise self._held(owner)

    def keep(
        self,
        is_needed: Callable[[], bool],
        on_lost: Callable[[], None],
        saying: Callable[[Owner], Owner] = lambda owner: owner,
    ) -> None:
        """Renew the lease in a thread for as long as it is needed; call `on_lost` if another run has taken it.

        Each renewal stores the owner with what `saying` adds. Called again, it goes on where the thread has ended.
        """
        if self._thread is not None and self._thread.is_alive():
            return
        some = (is_needed, on_lost, saying)
        self._thread = threading.Thread(target=self._renew, args=some, name="lease", daemon=True)
        self._thread.start()

    def renew(self) -> None:
        """Renew it now, as the owner has something to say."""
        self._is_due.set()

    def release(self) -> None:
        """End the renewals, and remove the file if it is still this run's; one that cannot be removed expires."""
        self._ended.set()
        self._is_due.set()
        if self._thread is not None:
            self._thread.join()
        try:
            content = self._file.read()
            owner = None if content is None else Owner.read(content)
            if owner is not None and owner.token == self._owner.token:
                self._file.delete()
        except TailraceError as error:
            log.warning("the lease is not removed; on this machine the next run takes it over at once: %s", error)

    def _is_dead(self, content: str) -> bool:
        """Whether the owner of a file is dead, after watching it if need be. Raises ConfigError if it lives."""
        owner = Owner.read(content)
        is_alive = None if owner is None else owner.is_alive()
        if is_alive is not None:
            if is_alive:
                raise self._held(owner)
            return True
        shown = "another run" if owner is None else f"process {owner.pid} on {owner.host}"
        log.warning(
            "%s: the checkpoint was in use by %s; waiting up to %d s to see whether that run still lives",
            *(self._file.where, shown, STALE_SECONDS),
        )
        deadline = time.monotonic() + STALE_SECONDS
        while time.monotonic() < deadline:
            time.sleep(_LOOK_SECONDS)
            now = self._file.read()
            if now is None:
                return False
            if now != content:
                raise self._held(Owner.read(now) or owner)
        return True

    def _held(self, owner: Owner | None) -> ConfigError:
        who = "another run"
        if owner is not None:
            who = f"another run: process {owner.pid} on {owner.host}, since {owner.since}"
        return ConfigError(
            f"the checkpoint is in use by {who}",
            where=self._file.where,
            remedy="stop that run, or give this pipeline a checkpoint of its own, and see `tailrace check`",
        )

    def _waits(self) -> bool:
        """Wait until it is to be renewed; False if it is to be released."""
        self._is_due.wait(RENEW_SECONDS)
        self._is_due.clear()
        return not self._ended.is_set()

    def _renew(
        self, is_needed: Callable[[], bool], on_lost: Callable[[], None], saying: Callable[[Owner], Owner]
    ) -> None:
        while self._waits() and is_needed():
            try:
                content = self._file.read()
                owner = self._owner if content is None else Owner.read(content)
                if owner is not None and owner.token == self._owner.token:
                    self._owner = replace(saying(self._owner), beat=self._owner.beat + 1)
                    self._file.write(self._owner.content)
                    continue
            except TailraceError as error:
                log.warning("the lease of the checkpoint could not be renewed: %s", error)
                continue
            self.lost = self._held(owner)
            on_lost()
            return


def _machine() -> str | None:
    """Identifies this machine since its start, and the namespace of its process ids (a container has another)."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:  # no Linux
        return None


def _started(pid: int) -> str | None:
    """When a process of this machine started, in ticks since the machine did."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[19]
    except OSError:
        return None
