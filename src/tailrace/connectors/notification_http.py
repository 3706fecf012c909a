"""Posts notifications to an address by HTTP, in a thread of its own: one that does not answer stops nothing.

Number of tries, pauses, what counts as delivered and which addresses are refused are those of Debezium 3.7.
"""

from __future__ import annotations

import ipaddress
import logging
import queue
import socket
import threading
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from tailrace.config.options.snapshot import (
    NOTIFICATION_HTTP_ALLOW_PRIVATE_NETWORKS,
    NOTIFICATION_HTTP_RETRIES,
    NOTIFICATION_HTTP_TIMEOUT_MS,
    NOTIFICATION_HTTP_URL,
)

if TYPE_CHECKING:
    import httpx

    from tailrace.config import Config

log = logging.getLogger(__name__)

Payload = dict[str, object]

_WAITING = 1000  # guessed
_TERMINAL, _LEAST_RETRIES = ("COMPLETED", "ABORTED", "SKIPPED"), 3
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 1.0, 30.0  # guessed
# Whoever notifies waits so long for an address that has answered: the process may end right after its last
# notification. One that is away is not waited for.
_PATIENCE_SECONDS = 2.0
_PRIVATE = [ipaddress.ip_network(each) for each in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7")]


@dataclass(frozen=True)
class Endpoint:
    """Where notifications go. The address may hold a secret in its path; `retries` come after the first try."""

    url: str = field(repr=False)
    retries: int
    timeout_seconds: float
    allows_private: bool

    @staticmethod
    def of(config: Config) -> Endpoint:
        """What `notification.http.*` says."""
        return Endpoint(
            config.need(NOTIFICATION_HTTP_URL),
            config[NOTIFICATION_HTTP_RETRIES],
            config[NOTIFICATION_HTTP_TIMEOUT_MS] / 1000,
            config[NOTIFICATION_HTTP_ALLOW_PRIVATE_NETWORKS],
        )

    @property
    def shown(self) -> str:
        """The address for messages: scheme and host."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.hostname}"


def is_private(host: str) -> bool:
    """Whether a name or an address leads to this machine or a private network. Raises OSError for unknown names."""
    return any(_is_private(str(address[4][0])) for address in socket.getaddrinfo(host, None))


def _is_private(text: str) -> bool:
    address = ipaddress.ip_address(text.partition("%")[0])
    address = getattr(address, "ipv4_mapped", None) or address
    special = address.is_loopback or address.is_link_local or address.is_unspecified
    return special or getattr(address, "is_site_local", False) or any(address in each for each in _PRIVATE)


@cache
def channel(endpoint: Endpoint) -> Channel:
    """The one channel of this process to an address."""
    return Channel(endpoint)


class Channel:
    """Delivers notifications in their order, at most 1,000 waiting; what is beyond them is dropped."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._queue: queue.Queue[tuple[Payload, threading.Event]] = queue.Queue(_WAITING)
        self._is_away, self._lost = False, 0
        threading.Thread(target=self._deliver_all, name="notifications by HTTP", daemon=True).start()

    def post(self, payloads: list[Payload]) -> None:
        """Have notifications delivered; waits for them for two seconds, unless the address is away."""
        try:
            for payload in payloads:
                done = threading.Event()
                self._queue.put_nowait((payload, done))
        except queue.Full:
            self._lose(f"{_WAITING} notifications are waiting")
            return
        if not self._is_away:
            done.wait(_PATIENCE_SECONDS)

    def _deliver_all(self) -> None:
        import httpx

        with httpx.Client(timeout=self._endpoint.timeout_seconds, follow_redirects=False) as client:
            while True:
                payload, done = self._queue.get()
                try:
                    self._deliver(client, payload)
                except Exception as error:  # whatever it is, the next notification is tried
                    self._lose(_reason(error))
                else:
                    self._reached()
                done.set()

    def _deliver(self, client: httpx.Client, payload: Payload) -> None:
        """Post one. Raises the error of the last try."""
        import httpx
        import tenacity

        retries = self._endpoint.retries
        tries = 1 + (max(retries, _LEAST_RETRIES) if payload["type"] in _TERMINAL else retries)
        for attempt in tenacity.Retrying(
            stop=tenacity.stop_after_attempt(tries),
            wait=tenacity.wait_exponential(_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS),
            retry=tenacity.retry_if_exception_type((httpx.HTTPError, socket.gaierror)),
            reraise=True,
        ):
            with attempt:
                self._post(client, payload)

    def _post(self, client: httpx.Client, payload: Payload) -> None:
        host = urlsplit(self._endpoint.url).hostname or ""
        if not self._endpoint.allows_private and is_private(host):
            raise PermissionError(PRIVATE.format(host))
        client.post(self._endpoint.url, json=payload).raise_for_status()

    def _lose(self, why: str) -> None:
        self._lost += 1
        level = logging.DEBUG if self._is_away else logging.ERROR
        log.log(
            level,
            "notifications do not reach %s: %s; the pipeline goes on without them. Check notification.http.url, and "
            "that this machine reaches it",
            self._endpoint.shown,
            why,
        )
        self._is_away = True

    def _reached(self) -> None:
        if self._is_away:
            log.warning("%s takes notifications again, %s were lost", self._endpoint.shown, f"{self._lost:,}")
        self._is_away, self._lost = False, 0


PRIVATE = "{} is this machine or in a private network; notification.http.allow.private.networks=true allows it"


def _reason(error: Exception) -> str:
    """An error without the path of the address."""
    response: Any = getattr(error, "response", None)
    return f"status {response.status_code}" if response is not None else str(error) or type(error).__name__
