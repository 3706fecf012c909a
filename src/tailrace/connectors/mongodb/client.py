"""Opens connections to MongoDB and translates the server's errors."""

from __future__ import annotations

import ssl
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from bson.codec_options import CodecOptions, DatetimeConversion
from bson.raw_bson import RawBSONDocument
from pymongo import MongoClient
from pymongo.errors import (
    AutoReconnect,
    ConfigurationError,
    InvalidURI,
    OperationFailure,
    PyMongoError,
    ServerSelectionTimeoutError,
)
from pymongo.uri_parser import parse_uri

from tailrace.config import Config
from tailrace.connectors.mongodb import encryption
from tailrace.connectors.mongodb.options import (
    MONGODB_AUTHSOURCE,
    MONGODB_CONNECT_TIMEOUT_MS,
    MONGODB_CONNECTION_STRING,
    MONGODB_HEARTBEAT_FREQUENCY_MS,
    MONGODB_PASSWORD,
    MONGODB_SERVER_SELECTION_TIMEOUT_MS,
    MONGODB_SOCKET_TIMEOUT_MS,
    MONGODB_SSL_ENABLED,
    MONGODB_SSL_INVALID_HOSTNAME_ALLOWED,
    MONGODB_SSL_KEYSTORE,
    MONGODB_SSL_KEYSTORE_PASSWORD,
    MONGODB_SSL_TRUSTSTORE,
    MONGODB_USER,
)
from tailrace.connectors.retry import driver_error_of, retrying
from tailrace.connectors.snapshot_ports import Failures
from tailrace.errors import SourceError
from tailrace.model.text.json_reader import make_room_for
from tailrace.override import override

T = TypeVar("T")
Client = MongoClient[dict[str, Any]]
RAW: CodecOptions[RawBSONDocument] = CodecOptions(document_class=RawBSONDocument)
# Dates that Python does not hold (from the year 10000 on) are DatetimeMS.
ALL_DATES: CodecOptions[dict[str, Any]] = CodecOptions(
    tz_aware=True, datetime_conversion=DatetimeConversion.DATETIME_AUTO
)

# https://github.com/mongodb/mongo/blob/master/src/mongo/base/error_codes.yml
UNAUTHORIZED, AUTHENTICATION_FAILED = 13, 18
CURSOR_NOT_FOUND, SNAPSHOT_TOO_OLD, SNAPSHOT_UNAVAILABLE = 43, 239, 246
TOO_LARGE = 10334  # BSONObjectTooLarge
NO_IMAGE = 47  # NoMatchingDocument: a pre- or post-image is required, and there is none
UUID_MISMATCH = 361  # CollectionUUIDMismatch: the collection has another name by now, or is gone
HISTORY_LOST = frozenset((136, 222, 260, 280, 286, 40585, 40615, 50811))
# The server takes no documents with more levels.
DEEPEST = 200
_NO_KEY = "Private key doesn't match certificate"
_BY_DNS = "mongodb+srv://"
_TRANSIENT = frozenset(
    (
        6,
        7,
        63,
        89,
        91,
        133,
        134,
        150,
        189,
        234,
        262,
        9001,
        10107,
        11600,
        11602,
        13388,
        13435,
        13436,
        SNAPSHOT_UNAVAILABLE,
    )
)


class MongoFailures(Failures):
    """Implements Failures."""

    driver_error: type[Exception] = PyMongoError

    @override
    def is_transient(self, error: BaseException) -> bool:
        """Elections, restarts, networks."""
        cause = driver_error_of(error)
        if isinstance(cause, OperationFailure):
            return cause.code in _TRANSIENT or cause.has_error_label("ResumableChangeStreamError")
        return isinstance(cause, AutoReconnect) and not _is_refused(cause)

    @override
    def is_lost(self, error: BaseException) -> bool:
        return self.is_transient(error)

    @override
    def is_passing(self, error: BaseException) -> bool:
        cause = driver_error_of(error)
        return self.is_transient(error) or (isinstance(cause, OperationFailure) and cause.code == SNAPSHOT_TOO_OLD)

    @override
    def line(self, error: BaseException) -> str:
        """Without the server's whole answer, and the command that it refused."""
        text = str(error).partition("\n")[0].partition(" to execute command {")[0]
        return text.partition(", full error:")[0].partition(", Timeout:")[0].partition(", Topology Description:")[0]

    @contextmanager
    @override
    def translated(self, doing: str) -> Iterator[None]:
        try:
            yield
        except PyMongoError as error:
            line = self.line(error)
            refused = encryption.refusal(line) if isinstance(error, ServerSelectionTimeoutError) else None
            if refused is not None:
                # Another try would be refused, too: the driver's error behind it would say that it might not.
                raise refused from None
            raise _sentence(error, doing, line) from error


FAILURES = MongoFailures()


def connect(config: Config, application: str = "tailrace") -> Client:
    """A client, which connects when it is first used.

    Raises SourceError for a connection string that is none, and for files of certificates that cannot be used.
    """
    text = config[MONGODB_CONNECTION_STRING]
    make_room_for(DEEPEST)
    with FAILURES.translated("the connection string cannot be used"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of options that the driver does not know
        given = {name.lower(): value for name, value in parts_of(text)["options"].items()}
        encryption.check_files(config, given)
        try:
            return MongoClient(text, appname=application[:128], tz_aware=True, **_options(config, given))
        except ssl.SSLError as error:
            raise encryption.untrusting(error.reason) from error


def _options(config: Config, given: Mapping[str, Any]) -> dict[str, Any]:
    """What the properties add to `given`, the options of the connection string, which go before them."""
    options: dict[str, Any] = {
        "datetime_conversion": DatetimeConversion.DATETIME_AUTO.name,
        "connectTimeoutMS": config[MONGODB_CONNECT_TIMEOUT_MS],
        "serverSelectionTimeoutMS": config[MONGODB_SERVER_SELECTION_TIMEOUT_MS],
        "heartbeatFrequencyMS": config[MONGODB_HEARTBEAT_FREQUENCY_MS],
        "socketTimeoutMS": config[MONGODB_SOCKET_TIMEOUT_MS] or None,
    }
    user = config[MONGODB_USER]
    if user:
        options |= {"username": user, "password": config[MONGODB_PASSWORD]}
        options |= {"authSource": config[MONGODB_AUTHSOURCE]}
    if config[MONGODB_SSL_ENABLED]:
        files = {
            "tlsCAFile": config[MONGODB_SSL_TRUSTSTORE],
            "tlsCertificateKeyFile": config[MONGODB_SSL_KEYSTORE],
        }
        options |= {"tls": True, **{option: file for option, file in files.items() if file}}
        options["tlsAllowInvalidHostnames"] = config[MONGODB_SSL_INVALID_HOSTNAME_ALLOWED]
        password = config[MONGODB_SSL_KEYSTORE_PASSWORD]
        options |= {"tlsCertificateKeyFilePassword": password} if password else {}
    return {name: value for name, value in options.items() if name.lower() not in given and value is not None}


class Server:
    """Asks one server over a client that is kept; a server that is away is waited for, as the retry options say."""

    def __init__(self, config: Config, application: str = "tailrace planner") -> None:
        self.config, self._application = config, application
        self._client: Client | None = None

    @property
    def client(self) -> Client:
        """The client."""
        if self._client is None:
            self._client = connect(self.config, self._application)
        return self._client

    def ask(self, question: Callable[[Client], T], doing: str = "the server cannot be queried") -> T:
        """The result of a question. Raises SourceError."""

        def attempt() -> T:
            with FAILURES.translated(doing):
                return question(self.client)

        return retrying(self.config, attempt, FAILURES.is_transient)

    def close(self) -> None:
        """Close the client."""
        if self._client is not None:
            self._client.close()
            self._client = None


def set_name(client: Client) -> str:
    """The name of the replica set; empty through mongos."""
    return str(client.admin.command("hello").get("setName", ""))


def addresses(config: Config) -> str:
    """Where the connection string points, without user and password."""
    try:
        return hosts_of(config[MONGODB_CONNECTION_STRING])
    except PyMongoError:
        return "mongodb.connection.string"


def hosts_of(url: str) -> str:
    """The hosts in a connection string with their ports, or the name that DNS has the hosts of."""
    nodes = parts_of(url)["nodelist"]
    return ",".join(host if url.startswith(_BY_DNS) else f"{host}:{port}" for host, port in nodes)


def parts_of(url: str) -> dict[str, Any]:
    """The parts of a connection string, without asking DNS for the hosts of `mongodb+srv`. Raises PyMongoError."""
    written = url if not url.startswith(_BY_DNS) else f"mongodb://{url.removeprefix(_BY_DNS)}"
    try:
        return dict(parse_uri(written, validate=False))
    except ValueError as error:  # of a port
        raise InvalidURI(str(error)) from error


def code_of(error: BaseException) -> int | None:
    """The server's error code in an error or in what caused it."""
    cause = driver_error_of(error)
    return cause.code if isinstance(cause, OperationFailure) else None


def _is_refused(error: AutoReconnect) -> bool:
    """Whether another try would be refused likewise: certificates, names that do not resolve."""
    signs = ("SSL handshake failed", "CERTIFICATE_VERIFY_FAILED", "nodename nor servname", "Name or service not known")
    return any(sign in str(error) for sign in signs)


def _sentence(error: PyMongoError, doing: str, line: str) -> SourceError:
    if type(error.__cause__).__module__.startswith("dns."):
        what = f"DNS does not say which servers there are: {line}"
        remedy = "check the name behind mongodb+srv:// and this machine's DNS, or list all hosts behind mongodb://"
        return SourceError(what, where="mongodb.connection.string", remedy=remedy)
    if isinstance(error, ConfigurationError) and _NO_KEY in line:
        return encryption.keyless()
    if isinstance(error, InvalidURI | ConfigurationError):
        remedy = "mongodb://user:password@host:27017/?replicaSet=rs0, with special characters of the password as %xx"
        return SourceError("the connection string is not valid", where="mongodb.connection.string", remedy=remedy)
    if isinstance(error, ServerSelectionTimeoutError):
        remedy = (
            "check mongodb.connection.string, that mongod runs, and the firewall; replicaSet must be the set's name"
        )
        return SourceError(f"no server can be reached: {line}", remedy=remedy)
    code = error.code if isinstance(error, OperationFailure) else None
    if code == AUTHENTICATION_FAILED:
        remedy = "set mongodb.user, mongodb.password and mongodb.authsource (or those of the connection string)"
        return SourceError("authentication failed", remedy=remedy)
    if code == UNAUTHORIZED:
        remedy = (
            "see whether the user still exists (db.getUsers()), and grant it the roles readAnyDatabase, or read on the "
            "captured databases; see docs/connectors/mongodb.md"
        )
        return SourceError(f"{doing}: the user lacks the privilege: {line}", remedy=remedy)
    if isinstance(error, AutoReconnect):
        return SourceError(f"{doing}: the connection was lost: {line}", remedy="check that the server runs")
    return SourceError(f"{doing}: {line}")


def details(error: OperationFailure) -> Mapping[str, Any]:
    """The server's answer."""
    return error.details or {}
