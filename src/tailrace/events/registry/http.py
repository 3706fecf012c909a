"""Asks a schema registry over HTTP: addresses in turn, authentication, certificates, and waiting while it is away."""

from __future__ import annotations

import logging
import re
import ssl
import time
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from tailrace.config import Config
from tailrace.config.option import Option
from tailrace.errors import ConfigError, SinkAwayError, SinkError
from tailrace.events.registry.oauth import Credentials, Tokens

if TYPE_CHECKING:
    import httpx

log = logging.getLogger(__name__)

# A registry that restarts is away for seconds; a query that failed is started again after growing pauses.
PATIENCE_SECONDS = 30.0
# A check is for somebody who waits.
AT_ONCE_SECONDS = 2.0
_TIMEOUT_SECONDS, _FIRST_PAUSE, _LONGEST_PAUSE = 20.0, 0.2, 5.0
_CONVERT = (
    "the file must be PEM; of a keystore of Java: keytool -importkeystore -srckeystore FILE -destkeystore x.p12 "
    "-deststoretype PKCS12, then openssl pkcs12 -in x.p12 -out x.pem"
)
_UNKNOWN_USER, _NOT_ALLOWED = 401, 403
_NAME, _VALUE = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+"), re.compile(r"[\t\x20-\x7e]*")
_PASSING = (429, 500, 502, 503, 504)


@dataclass(frozen=True)
class Address:
    """Where a registry is and who asks: `user` is name and password, `client` gets tokens.

    `login` and `truststore` name properties; `headers` are sent with each request to the registry, and to nobody else;
    `proxy` is the address of a proxy. Without `checks_name` a certificate may be for another server.

    `trusted` and `own` are files in PEM: certificates to trust, and a key with its certificate.
    """

    urls: tuple[str, ...]
    user: tuple[str, str] | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    trusted: str | None = None
    _: KW_ONLY
    own: str | None = None
    key_password: str | None = field(default=None, repr=False)
    login: str = ""
    truststore: str = ""
    client: Credentials | None = None
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    checks_name: bool = True
    trusts_all: bool = False
    proxy: str | None = field(default=None, repr=False)
    connect_seconds: float = _TIMEOUT_SECONDS
    answer_seconds: float = _TIMEOUT_SECONDS

    @property
    def shown(self) -> str:
        """The addresses for messages, without a password."""
        return ", ".join(self.urls)


@dataclass(frozen=True)
class RegistryResponse:
    """A status and what came with it, as JSON; an empty mapping for what is no JSON."""

    status: int
    body: Any

    @property
    def is_good(self) -> bool:
        """Whether the request was carried out."""
        return self.status < 300

    @property
    def message(self) -> str:
        """What the registry says of it."""
        said = self.body if isinstance(self.body, Mapping) else {}
        text = str(said.get("message") or said.get("detail") or said.get("title") or f"status {self.status}")
        return text.removeprefix("io.apicurio.registry.rules.RuleViolationException: ")


def split_url(url: str, where: str) -> tuple[str, tuple[str, str] | None]:
    """An address without the user in it, and this user. Raises ConfigError, which names the property `where`."""
    parts = urlsplit(url.strip().rstrip("/"))
    if parts.scheme not in ("http", "https") or not parts.hostname:
        remedy = "write http:// or https:// before the host"
        raise ConfigError(
            "the address of a schema registry begins with http:// or https://", where=where, remedy=remedy
        )
    host = parts.hostname if parts.port is None else f"{parts.hostname}:{parts.port}"
    user = None if parts.username is None else (unquote(parts.username), unquote(parts.password or ""))
    return urlunsplit((parts.scheme, host, parts.path, parts.query, "")), user


def given_headers(own: Config, family: Option[str]) -> tuple[tuple[str, str], ...]:
    """The headers of a converter's family. Raises ConfigError for one that HTTP cannot have, without its value."""
    headers, start = sorted(own.members(family).items()), len(family.name) - 1
    for name, _ in headers:
        if not _NAME.fullmatch(name[start:]):
            raise ConfigError("no header of HTTP can have this name", where=name, remedy="write letters, digits and -")
    return tuple((name[start:], _sendable(name, value)) for name, value in headers)


def _sendable(where: str, value: str) -> str:
    """The value of a header. A secret from a file often ends with a line break."""
    if not _VALUE.fullmatch(value.strip()):
        raise ConfigError(
            "no header of HTTP can have this value", where=where, remedy="write characters of ASCII, in one line"
        )
    return value.strip()


def proxy_url(host: str | None, port: int, user: str | None = None, password: str | None = None) -> str | None:
    """The address of a proxy, None without one. The reference takes a host without a port for none."""
    if not host or port < 0:
        return None
    login = f"{quote(user, safe='')}:{quote(password or '', safe='')}@" if user else ""
    return f"http://{login}{host}:{port}"


class RegistryConnection:
    """A connection to one registry. Keep it: it stays connected."""

    def __init__(self, address: Address, patience_seconds: float = PATIENCE_SECONDS) -> None:
        self.address = address
        self._patience = patience_seconds
        self._library = library()
        # Of each request and not of the client, which asks a server of tokens as well.
        self._headers = {"Accept": "application/json, application/vnd.schemaregistry.v1+json", **dict(address.headers)}
        if address.token is not None:
            self._headers["Authorization"] = f"Bearer {_sendable('the token of the schema registry', address.token)}"
        self._client: httpx.Client = self._library.Client(
            auth=address.user,
            timeout=self._library.Timeout(address.answer_seconds, connect=address.connect_seconds),
            verify=_context(address),
            proxy=address.proxy,
        )
        self._tokens = None if address.client is None else Tokens(address.client, self._client)
        self._first = 0

    def ask(
        self, method: str, path: str, body: Any = None, query: Mapping[str, str] | None = None, **headers: str
    ) -> RegistryResponse:
        """The answer to a request with a text or JSON; the next address is asked where one is away.

        Raises SinkAwayError after a time without an answer, SinkError where the registry does not let the user in.
        """
        deadline, pause, told, renewed = time.monotonic() + self._patience, _FIRST_PAUSE, False, False
        while True:
            answer = self._tried(method, path, body, query, headers)
            if isinstance(answer, RegistryResponse):
                if told:
                    log.info("the schema registry at %s answers again", self.address.shown)
                # A token may have been revoked before its time.
                if answer.status == _UNKNOWN_USER and self._tokens is not None and not renewed:
                    renewed = self._tokens.forget()
                    continue
                return self._allowed(answer)
            if time.monotonic() + pause > deadline:
                raise SinkAwayError(
                    f"the schema registry does not answer: {answer}",
                    where=self.address.shown,
                    remedy="check the address, the network, and that the registry runs",
                )
            if not told:
                log.warning("the schema registry at %s does not answer, waiting: %s", self.address.shown, answer)
                told = True
            time.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)

    def setting(self, path: str, name: str) -> str | None:
        """A setting of the registry; None where it has none, or does not let the user read it, who may yet register.

        Raises SinkAwayError.
        """
        try:
            answer = self.ask("GET", path, query={"defaultToGlobal": "true"})
        except SinkAwayError:
            raise
        except SinkError as error:
            log.debug("%s is not read: %s", path, error)
            return None
        value = answer.body.get(name) if answer.is_good and isinstance(answer.body, Mapping) else None
        return None if value is None else str(value)

    def close(self) -> None:
        """Disconnect."""
        self._client.close()

    def _tried(
        self, method: str, path: str, body: Any, query: Mapping[str, str] | None, headers: Mapping[str, str]
    ) -> RegistryResponse | str:
        """The answer of the first address that has one, or why the last one has none."""
        why = ""
        for turn in range(len(self.address.urls)):
            place = (self._first + turn) % len(self.address.urls)
            try:
                sent = {"content": body} if isinstance(body, str) else {"json": body}
                authorization = {} if self._tokens is None else self._tokens.header()
                url, all_headers = self.address.urls[place] + path, {**self._headers, **headers, **authorization}
                response = self._client.request(method, url, params=query, headers=all_headers, **sent)
            except self._library.TransportError as error:
                if "CERTIFICATE_VERIFY_FAILED" in str(error):
                    raise self._untrusted(error) from error
                why = f"{type(error).__name__}: {error}"
                continue
            if response.status_code in _PASSING:
                why = f"status {response.status_code}"
                continue
            self._first = place
            return RegistryResponse(response.status_code, _json(response))
        return why

    def _untrusted(self, error: Exception) -> SinkError:
        return SinkError(
            f"the schema registry's certificate is not trusted: {error}",
            where=self.address.shown,
            remedy=f"name a file with its authority's certificate in {self.address.truststore}",
        )

    def _allowed(self, answer: RegistryResponse) -> RegistryResponse:
        if answer.status not in (_UNKNOWN_USER, _NOT_ALLOWED):
            return answer
        what = "does not know this user" if answer.status == _UNKNOWN_USER else "does not allow this user to do it"
        raise SinkError(
            f"the schema registry {what} (status {answer.status}: {answer.message})",
            where=self.address.shown,
            remedy=f"correct {self.address.login}, or grant the user to read and register schemas",
        )


def library() -> ModuleType:
    """httpx, an optional dependency. Raises SinkError where it is not installed."""
    try:
        import httpx
    except ImportError as error:
        raise SinkError("httpx is not installed", remedy="pip install 'tailrace[avro]'") from error
    return httpx


def _json(response: httpx.Response) -> Any:
    try:
        return response.json()
    except ValueError:
        return {"message": response.text[:200]} if response.text else {}


def _context(address: Address) -> ssl.SSLContext | bool:
    """The certificates to trust and to show. Raises ConfigError for files that are not PEM."""
    if address.trusts_all and address.own is None:
        return False
    if address.trusted is None and address.own is None and address.checks_name:
        return True
    file = address.trusted or ""
    try:
        context = ssl.create_default_context(cafile=address.trusted)
        if address.own is not None:
            file = address.own
            context.load_cert_chain(address.own, password=address.key_password or "")
        context.check_hostname = address.checks_name and not address.trusts_all
        if address.trusts_all:
            context.verify_mode = ssl.CERT_NONE
    except (OSError, ssl.SSLError) as error:
        is_there = Path(file).is_file()
        raise ConfigError(
            f"certificates cannot be read: {error.strerror or error}",
            where=file,
            remedy=_CONVERT if is_there else "name a file that is there",
        ) from error
    return context
