"""The settings of how a converter reaches its schema registry: certificates, headers, proxies, and times.

Declared without the converter's name before them, as `Config.within` gives them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tailrace.config.kinds import FLAG, INT, POSITIVE_INT, TEXT, InvalidValue, Kind, optional
from tailrace.config.option import Alias, Option, OptionStatus

_PEM = "files are PEM whatever this says"
_NO_PASSWORD = "certificates in PEM have none"
_OPENSSL = "OpenSSL decides it"
_WAITS = "a registry that is away is asked again for 30 seconds, at each address of the list"
_ONE_CLIENT = "there is one HTTP client"
PROCESS_CACHE = "each process keeps the ids of all its schemas"
READING = "it is for reading records"
NO_RULES = "rules of data contracts are not run: remove them, or encrypt and check by transforms"
ONLY_VALUE, TAKE_ONE = "the only value is what is done", "take one of these"


class Certificates(NamedTuple):
    """The settings of the certificates of a registry's client."""

    truststore: Option[str | None]
    keystore: Option[str | None]
    key_password: Option[str | None]

    @staticmethod
    def of(prefix: str, whose: str, older: str | None = None) -> Certificates:
        """The settings below a prefix, and below an older one."""

        def setting(own: str, meaning: str, *, secret: bool = False) -> Option[str | None]:
            aliases = () if older is None else (Alias(older + own),)
            return Option(prefix + own, optional(TEXT), None, f"{whose}: {meaning}", secret=secret, aliases=aliases)

        return Certificates(
            setting("truststore.location", "a file with certificates to trust, in PEM."),
            setting("keystore.location", "a file with own key and certificate, in PEM."),
            setting("key.password", "the password of the own key.", secret=True),
        )

    def all(self) -> Iterator[Option[object]]:
        """These, and those that have no effect."""
        yield self.key_password
        for store in (self.truststore, self.keystore):
            yield store
            yield _beside(store, "type", "Its form.", _PEM)
            yield _beside(store, "password", "Its password.", _NO_PASSWORD, secret=True)


def _beside(
    store: Option[str | None], own: str, meaning: str, note: str, *, secret: bool = False
) -> Option[str | None]:
    """A setting of a store, which has no effect."""

    def named(name: str) -> str:
        return f"{name.removesuffix('location')}{own}"

    aliases = tuple(Alias(named(alias.name)) for alias in store.aliases)
    return Option(
        named(store.name), optional(TEXT), None, meaning, OptionStatus.CONNECT, note, secret=secret, aliases=aliases
    )


def quiet(note: str, *names: str) -> tuple[Option[str | None], ...]:
    """Settings of the reference that have no effect, for one reason."""
    return tuple(Option(name, optional(TEXT), None, "See the converter.", OptionStatus.CONNECT, note) for name in names)


def refused(note: str, *names: str, secret: bool = False) -> tuple[Option[str | None], ...]:
    """Settings of the reference that cannot have their effect; `note` says what to do."""
    return tuple(
        Option(name, optional(TEXT), None, "See the converter.", OptionStatus.REFUSED, note, secret=secret)
        for name in names
    )


def _identification(text: str) -> str:
    if text.strip().lower() not in ("", "https"):
        raise InvalidValue("https is expected, or nothing for any name of the server")
    return text.strip().lower()


SCHEMA_REGISTRY_SSL = Certificates.of("schema.registry.ssl.", "Confluent")
_IN_FILE = "write it to a file in PEM, and name that in schema.registry.ssl."
OF_CONFLUENT = (
    *SCHEMA_REGISTRY_SSL.all(),
    *refused(f"{_IN_FILE}truststore.location", "schema.registry.ssl.truststore.certificates"),
    *refused(
        f"{_IN_FILE}keystore.location",
        "schema.registry.ssl.keystore.key",
        "schema.registry.ssl.keystore.certificate.chain",
        secret=True,
    ),
    SCHEMA_REGISTRY_SSL_IDENTIFICATION := Option(
        "schema.registry.ssl.endpoint.identification.algorithm",
        Kind("https or nothing", _identification, blank_is_unset=False),
        "https",
        "Confluent: whether the certificate must be for the server's name; with nothing any name does.",
    ),
    *quiet(
        _OPENSSL,
        *(
            f"schema.registry.ssl.{own}"
            for own in (
                "protocol",
                "provider",
                "cipher.suites",
                "enabled.protocols",
                "keymanager.algorithm",
                "trustmanager.algorithm",
                "secure.random.implementation",
                "engine.factory.class",
            )
        ),
    ),
    REQUEST_HEADER := Option(
        "request.header.*", TEXT, None, "Confluent: a header of each request to the registry.", secret=True
    ),
    PROXY_HOST := Option("proxy.host", optional(TEXT), None, "Confluent: the proxy in front of the registry."),
    PROXY_PORT := Option("proxy.port", INT, "-1", "Confluent: its port."),
    HTTP_CONNECT_TIMEOUT_MS := Option(
        "http.connect.timeout.ms", POSITIVE_INT, "20000", "Confluent: how long to wait for a connection."
    ),
    HTTP_READ_TIMEOUT_MS := Option(
        "http.read.timeout.ms", POSITIVE_INT, "20000", "Confluent: how long to wait for an answer."
    ),
    *quiet(_WAITS, "max.retries", "retries.wait.ms", "retries.max.wait.ms"),
    *quiet("the addresses are asked in their order", "schema.registry.url.randomize", "url.randomize"),
    *quiet(_ONE_CLIENT, "use.apache.http.client"),
)
APICURIO_TLS = Certificates.of("apicurio.registry.tls.", "Apicurio", "apicurio.registry.request.ssl.")
_APICURIO_FILE = "write it to a file in PEM, and name that in apicurio.registry.tls."
OF_APICURIO = (
    *APICURIO_TLS.all(),
    APICURIO_VERIFY_HOST := Option(
        "apicurio.registry.tls.verify-host",
        FLAG,
        "true",
        "Apicurio: the certificate must be for the server's name.",
    ),
    APICURIO_TRUST_ALL := Option(
        "apicurio.registry.tls.trust-all", FLAG, "false", "Apicurio: trust any certificate, for tests."
    ),
    *refused(f"{_APICURIO_FILE}truststore.location", "apicurio.registry.tls.certificates"),
    *refused(
        f"{_APICURIO_FILE}keystore.location",
        "apicurio.registry.tls.client-certificate",
        "apicurio.registry.tls.client-key",
        secret=True,
    ),
    APICURIO_REQUEST_HEADERS := Option(
        "apicurio.registry.request.headers.*", TEXT, None, "Apicurio 2: a header of each request.", secret=True
    ),
    APICURIO_PROXY_HOST := Option(
        "apicurio.registry.proxy.host", optional(TEXT), None, "Apicurio: the proxy in front of the registry."
    ),
    APICURIO_PROXY_PORT := Option("apicurio.registry.proxy.port", INT, "-1", "Apicurio: its port."),
    APICURIO_PROXY_USERNAME := Option("apicurio.registry.proxy.username", optional(TEXT), None, "Apicurio: its user."),
    APICURIO_PROXY_PASSWORD := Option(
        "apicurio.registry.proxy.password", optional(TEXT), None, "Apicurio: its password.", secret=True
    ),
    *quiet(
        _WAITS,
        "apicurio.registry.retry-count",
        "apicurio.registry.retry-backoff-ms",
    ),
    *quiet(_ONE_CLIENT, "apicurio.registry.http.adapter", "apicurio.registry.otel.enabled"),
    *quiet(
        "nothing is added to an address that ends with /apis/registry/v2 or /apis/registry/v3",
        "apicurio.registry.client.disable-auto-basepath-append",
        "apicurio.registry.rest.client.auto-base-path",
    ),
    *refused(
        "end apicurio.registry.url with /apis/registry/v2 or /apis/registry/v3, which says the version",
        "apicurio.registry.url.version",
    ),
)
