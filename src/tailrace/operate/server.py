"""Serves HTTP for the pipelines of this process, in threads of its own: metrics, health, Connect's REST and a console.

It listens on the loopback by default. There reading needs no token; beyond it everything needs one but
`/health` and `/ready`, which then say one word, and the console's page. What changes something needs it everywhere.
"""

from __future__ import annotations

import base64
import hmac
import ipaddress
import json
import logging
import os
import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tailrace.errors import ConfigError, TailraceError
from tailrace.override import override

log = logging.getLogger(__name__)

TOKEN = "TAILRACE_HTTP_TOKEN"
DEFAULT_HOST = "127.0.0.1"
_READS = ("GET", "HEAD")
# What everybody may ask: the first two then say one word, and the page has no figure in itself.
_PUBLIC = ("/health", "/ready", "/console")
_MOST_BYTES = 1 << 20
# A client that says nothing for so long does not keep its thread.
_PATIENCE_SECONDS = 30


@dataclass(frozen=True)
class HttpRequest:
    """A request; `query` has the last value of each name, `is_trusted`: it may see what an operator may see."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    accepts: str = ""
    body: bytes = b""
    is_trusted: bool = True

    def json(self) -> Any:
        """The body as JSON, None if it is empty. Raises Refusal."""
        try:
            return json.loads(self.body) if self.body else None
        except ValueError as error:
            raise Refusal(400, f"the body is no JSON: {error}") from error


@dataclass(frozen=True)
class Response:
    """An answer; a `body` that is no bytes is sent as JSON, None as no content."""

    body: Any = None
    status: int = 200
    type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def content(self) -> bytes:
        """The body's bytes."""
        if self.body is None:
            return b""
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body, default=str).encode()


class Refusal(Exception):
    """A request that is not carried out, with an HTTP status; the form of the answer is Kafka Connect's."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status

    @staticmethod
    def of(error: TailraceError, status: int) -> Refusal:
        """The refusal for an error, with its place and its remedy."""
        return Refusal(status, error.line if error.where is None else f"{error.where}: {error.line}")

    @property
    def response(self) -> Response:
        """The answer."""
        return Response({"error_code": self.status, "message": str(self)}, self.status)


Answer = Callable[[HttpRequest], Response]
"""Answers a request. Raises Refusal."""


class Server:
    """An HTTP server that runs from its creation until `close`. Raises ConfigError where it cannot listen."""

    def __init__(self, answer: Answer, port: int, host: str = DEFAULT_HOST) -> None:
        token = os.environ.get(TOKEN) or None
        if not _is_loopback(host) and token is None:
            raise ConfigError(
                f"{host} can be reached from other machines, and there is no token",
                where="http.host",
                remedy=f"set the environment variable {TOKEN} to a secret that clients send as `Authorization: Bearer`",
            )
        try:
            self._server = _Listener((host, port), answer, _Access(token, not _is_loopback(host)))
        except OSError as error:
            raise ConfigError(
                f"nobody can listen at {host}:{port}: {error.strerror or error}",
                where="http.port",
                remedy="choose another port; `ss -ltnp` shows who has it",
            ) from error
        threading.Thread(target=self._server.serve_forever, name="http", daemon=True).start()

    @property
    def url(self) -> str:
        """Where it listens."""
        host, port = self._server.server_address[:2]
        name = host.decode() if isinstance(host, bytes) else str(host)
        return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"

    def close(self) -> None:
        """Listen no more."""
        self._server.shutdown()
        self._server.server_close()


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 32

    def __init__(self, place: tuple[str, int], answer: Answer, access: _Access) -> None:
        self.address_family = socket.AF_INET6 if ":" in place[0] else socket.AF_INET
        self.answer, self.access = answer, access
        super().__init__(place, _Handler)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@dataclass(frozen=True)
class _Access:
    """Who may do what. `is_open`: other machines reach the server."""

    token: str | None = field(repr=False)
    is_open: bool

    def is_trusted(self, request: HttpRequest, host: str, authorization: str) -> bool:
        """Whether who asks may see what an operator may. Raises Refusal for what needs a token and has none."""
        is_read = request.method in _READS
        if self.token is not None and hmac.compare_digest(_token(authorization), self.token.encode()):
            return True
        # A page of another site, under a name that leads here, must not read what only this machine may.
        is_here = not self.is_open and _is_loopback(_host(host))
        if is_read and (is_here or request.path in _PUBLIC):
            return is_here
        if is_read and not self.is_open:
            raise Refusal(403, "the header Host names another machine")
        if self.token is None:
            raise Refusal(403, f"set the environment variable {TOKEN} of this process to change anything here")
        raise Refusal(401, f"send the token of {TOKEN}: Authorization: Bearer ..., or as a password")


def _token(authorization: str) -> bytes:
    """The token that a client sends, empty without one: as Bearer, or as the password of any user (kcctl)."""
    scheme, _, given = authorization.partition(" ")
    if scheme.lower() == "bearer":
        return given.encode()
    if scheme.lower() != "basic":
        return b""
    try:
        return base64.b64decode(given, validate=True).partition(b":")[2]
    except ValueError:
        return b""


def _host(header: str) -> str:
    try:
        return urlsplit(f"//{header}").hostname or ""
    except ValueError:
        return ""


class _Handler(BaseHTTPRequestHandler):
    server: _Listener
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "tailrace", ""
    timeout = _PATIENCE_SECONDS

    @override
    def handle_one_request(self) -> None:
        """A client that goes away in the middle is no error of ours."""
        try:
            super().handle_one_request()
        except ConnectionError as error:
            log.debug("a client has gone away: %s", error)
            self.close_connection = True

    def do_GET(self) -> None:
        try:
            response = self.server.answer(self._request())
        except Refusal as refusal:
            response = refusal.response
        except Exception as error:  # the server goes on, and whoever asked is told
            log.exception("a request could not be answered: %s %s", self.command, urlsplit(self.path).path)
            response = Refusal(500, f"the request could not be answered: {type(error).__name__}").response
        self._send(response)

    do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_GET

    def _request(self) -> HttpRequest:
        body = self._body()
        split = urlsplit(self.path)
        query = {name: values[-1] for name, values in parse_qs(split.query, keep_blank_values=True).items()}
        many = parse_qs(split.query, keep_blank_values=True).get("expand", [])
        query = {**query, **({"expand": ",".join(many)} if many else {})}
        request = HttpRequest(self.command, unquote(split.path), query, self.headers.get("Accept", ""), body)
        access, headers = self.server.access, self.headers
        given = headers.get("Authorization", "")
        if "Origin" in headers and given.lower().startswith("basic"):
            given = ""  # a browser adds a password by itself, also to what a page of another site sends
        return replace(request, is_trusted=access.is_trusted(request, headers.get("Host", ""), given))

    def _body(self) -> bytes:
        try:
            length = int(self.headers.get("Content-Length") or 0)
        except ValueError:
            length = -1
        if not 0 <= length <= _MOST_BYTES or self.headers.get("Transfer-Encoding"):
            self.close_connection = True
            raise Refusal(413, f"a body has a Content-Length of at most {_MOST_BYTES} bytes")
        return self.rfile.read(length)

    def _send(self, response: Response) -> None:
        content = response.content
        self.send_response(response.status)
        if content or response.status != 204:
            self.send_header("Content-Type", response.type)
            self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        if response.status == 401:
            self.send_header("WWW-Authenticate", "Bearer")
        for name, value in response.headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    @override
    def log_message(self, format: str, *arguments: Any) -> None:
        log.debug(format, *arguments)
