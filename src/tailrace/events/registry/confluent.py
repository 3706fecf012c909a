"""Confluent's schema registry, and others with its API: subjects, registration, lookups, the latest version."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import quote

from tailrace.config import Config
from tailrace.config.kinds import split_list
from tailrace.config.options.converters import (
    AUTO_REGISTER_SCHEMAS,
    BASIC_AUTH_CREDENTIALS_SOURCE,
    BASIC_AUTH_USER_INFO,
    BEARER_AUTH_CACHE_EXPIRY_BUFFER_SECONDS,
    BEARER_AUTH_CLIENT_ID,
    BEARER_AUTH_CLIENT_SECRET,
    BEARER_AUTH_CREDENTIALS_SOURCE,
    BEARER_AUTH_IDENTITY_POOL_ID,
    BEARER_AUTH_ISSUER_ENDPOINT_URL,
    BEARER_AUTH_LOGICAL_CLUSTER,
    BEARER_AUTH_SCOPE,
    BEARER_AUTH_TOKEN,
    NORMALIZE_SCHEMAS,
    SCHEMA_REGISTRY_BASIC_AUTH_USER_INFO,
    SCHEMA_REGISTRY_URL,
    SUBJECT_NAME_STRATEGY,
    USE_LATEST_VERSION,
)
from tailrace.config.options.registry_clients import (
    HTTP_CONNECT_TIMEOUT_MS,
    HTTP_READ_TIMEOUT_MS,
    PROXY_HOST,
    PROXY_PORT,
    REQUEST_HEADER,
    SCHEMA_REGISTRY_SSL,
    SCHEMA_REGISTRY_SSL_IDENTIFICATION,
)
from tailrace.errors import SinkError
from tailrace.events.registry.http import (
    AT_ONCE_SECONDS,
    Address,
    RegistryConnection,
    RegistryResponse,
    given_headers,
    proxy_url,
    split_url,
)
from tailrace.events.registry.oauth import Credentials
from tailrace.events.registry.registry import AVRO, JSON, Registry, Wanted, invalid, refused, unlike, unregistered
from tailrace.override import override

_NOT_FOUND, _CONFLICT, _INVALID = 404, 409, 422
_LEVEL, _TRANSITIVE, _OPEN = "compatibilityLevel", "_TRANSITIVE", "READWRITE"


@dataclass(frozen=True)
class ConfluentSettings:
    """The settings of Confluent's converter for keys or values; `prefix` is what its properties begin with."""

    prefix: str
    address: Address
    strategy: str
    registers: bool
    takes_latest: bool
    normalizes: bool

    @staticmethod
    def of(config: Config, part: str, prefix: str) -> ConfluentSettings:
        """As the properties say that begin with `prefix`."""
        own = config.within(prefix)
        strategy = own[SUBJECT_NAME_STRATEGY[part]].rpartition(".")[2]
        return ConfluentSettings(
            prefix,
            _address(own, prefix),
            strategy,
            # As in the reference, registering comes first.
            registers=own[AUTO_REGISTER_SCHEMAS],
            takes_latest=own[USE_LATEST_VERSION],
            normalizes=own[NORMALIZE_SCHEMAS],
        )

    def subject(self, wanted: Wanted) -> str:
        """The subject of a schema."""
        if self.strategy == "TopicNameStrategy":
            return f"{wanted.topic}-{wanted.part}"
        name = record_name(wanted)
        return name if self.strategy == "RecordNameStrategy" else f"{wanted.topic}-{name}"


def record_name(wanted: Wanted) -> str:
    """The full name of a record. Raises SinkError for another schema, which has none."""
    if wanted.language == AVRO and isinstance(wanted.node, Mapping) and wanted.node["type"] == "record":
        return str(wanted.node["name"])
    if wanted.language == JSON and "title" in wanted.node:
        return str(wanted.node["title"])
    raise SinkError(
        f"the {wanted.part} is no record, so its schema has no name",
        where=f"topic {wanted.topic}",
        remedy="name subjects by the topic, or let the transforms leave a record",
    )


def _address(own: Config, prefix: str) -> Address:
    urls = [split_url(url, f"{prefix}.{SCHEMA_REGISTRY_URL.name}") for url in split_list(own.need(SCHEMA_REGISTRY_URL))]
    user = next((each for _, each in urls if each is not None), None)
    info = own[BASIC_AUTH_USER_INFO]
    info = info or own[SCHEMA_REGISTRY_BASIC_AUTH_USER_INFO]
    if own[BASIC_AUTH_CREDENTIALS_SOURCE] == "USER_INFO" and info:
        who, _, password = info.partition(":")
        user = (who, password)
    source = own[BEARER_AUTH_CREDENTIALS_SOURCE]
    token = own[BEARER_AUTH_TOKEN] if source == "STATIC_TOKEN" else None
    certificates = f"{prefix}.schema.registry.ssl."
    return Address(
        tuple(url for url, _ in urls),
        None if source else user,
        token,
        own[SCHEMA_REGISTRY_SSL.truststore],
        own=own[SCHEMA_REGISTRY_SSL.keystore],
        key_password=own[SCHEMA_REGISTRY_SSL.key_password],
        login=f"{prefix}.basic.auth.user.info (with basic.auth.credentials.source=USER_INFO) or bearer.auth.token",
        truststore=f"{certificates}truststore.location",
        client=_client(own, prefix) if source == "OAUTHBEARER" else None,
        headers=(
            *given_headers(own, REQUEST_HEADER),
            *(
                (header, value)
                for header, value in (
                    ("target-sr-cluster", own[BEARER_AUTH_LOGICAL_CLUSTER]),
                    ("Confluent-Identity-Pool-Id", own[BEARER_AUTH_IDENTITY_POOL_ID]),
                )
                if source and value
            ),
        ),
        checks_name=own[SCHEMA_REGISTRY_SSL_IDENTIFICATION] == "https",
        proxy=proxy_url(own[PROXY_HOST], own[PROXY_PORT]),
        connect_seconds=own[HTTP_CONNECT_TIMEOUT_MS] / 1000,
        answer_seconds=own[HTTP_READ_TIMEOUT_MS] / 1000,
    )


def _client(own: Config, prefix: str) -> Credentials:
    name = f"{prefix}.bearer.auth."
    return Credentials(
        own.need(BEARER_AUTH_ISSUER_ENDPOINT_URL),
        own.need(BEARER_AUTH_CLIENT_ID),
        own.need(BEARER_AUTH_CLIENT_SECRET),
        own[BEARER_AUTH_SCOPE],
        own[BEARER_AUTH_CACHE_EXPIRY_BUFFER_SECONDS],
        f"{name}client.id and {name}client.secret",
    )


class ConfluentRegistry(Registry):
    """Implements Registry by the REST API of Confluent's."""

    def __init__(self, settings: ConfluentSettings) -> None:
        self._settings = settings

    @cached_property
    def _http(self) -> RegistryConnection:
        return RegistryConnection(self._settings.address)

    @override
    def name(self, wanted: Wanted) -> str:
        return self._settings.subject(wanted)

    @override
    def about(self) -> str:
        with closing(RegistryConnection(self._settings.address, AT_ONCE_SECONDS)) as http:
            answer = http.ask("GET", "/subjects")
            if not answer.is_good:
                raise self._failed("the subjects", answer)
            level = http.setting("/config", _LEVEL)
        return f"{self._settings.address.shown} answers, subjects: {len(answer.body)}, rule {level or 'unknown'}"

    @override
    def id(self, wanted: Wanted) -> int:
        settings, subject = self._settings, self.name(wanted)
        if settings.registers:
            answer = self._http.ask("POST", _path(subject, "/versions"), _body(wanted), self._query())
            if answer.status == _CONFLICT:
                raise self._conflict(subject, wanted, answer)
        elif settings.takes_latest:
            answer = self._http.ask("GET", _path(subject, "/versions/latest"))
        else:
            answer = self._http.ask("POST", _path(subject), _body(wanted), self._query())
        if answer.status == _NOT_FOUND:
            raise unregistered(subject, f"{settings.prefix}.auto.register.schemas")
        if answer.status == _INVALID:
            raise invalid(subject, answer.message, wanted)
        if not answer.is_good:
            raise self._failed(subject, answer)
        if settings.takes_latest and not settings.registers:
            difference = wanted.difference(json.loads(answer.body["schema"]))
            if difference != "nothing":
                raise unlike(subject, difference, f"{settings.prefix}.use.latest.version")
        return int(answer.body["id"])

    @override
    def refusal(self, wanted: Wanted) -> SinkError | None:
        settings, subject = self._settings, self.name(wanted)
        if not settings.registers:
            try:
                self.id(wanted)
            except SinkError as error:
                return error
            return None
        # Apicurio asked for all versions compares all, whatever the rule is.
        versions = "versions" if (self._level(subject) or "").endswith(_TRANSITIVE) else "versions/latest"
        path = f"/compatibility/subjects/{quote(subject, safe='')}/{versions}"
        answer = self._http.ask("POST", path, _body(wanted), {"verbose": "true", **self._query()})
        if answer.status == _NOT_FOUND:  # the first version of the subject
            return self._closed(subject, wanted)
        if answer.status == _INVALID:
            return invalid(subject, answer.message, wanted)
        if not answer.is_good:
            return self._failed(subject, answer)
        if not answer.body.get("is_compatible"):
            return self._conflict(subject, wanted, answer)
        return self._closed(subject, wanted)

    def _closed(self, subject: str, wanted: Wanted) -> SinkError | None:
        """The error for a schema that is not there, of a subject that takes none. Apicurio has no modes."""
        mode = self._http.setting(f"/mode/{quote(subject, safe='')}", "mode")
        if mode in (None, _OPEN) or self._http.ask("POST", _path(subject), _body(wanted), self._query()).is_good:
            return None
        return SinkError(
            f"the subject takes no schemas, its mode is {mode}",
            where=f"subject {subject}",
            remedy=f"set the mode of {subject} to {_OPEN}, or register the schema there",
        )

    def _level(self, subject: str) -> str | None:
        """The compatibility level of a subject, None where the registry does not say it."""
        of_subject = self._http.setting(f"/config/{quote(subject, safe='')}", _LEVEL)
        return of_subject or self._http.setting("/config", _LEVEL)

    def _query(self) -> dict[str, str]:
        return {"normalize": "true"} if self._settings.normalizes else {}

    def _conflict(self, subject: str, wanted: Wanted, answer: RegistryResponse) -> SinkError:
        """The error for a schema that a rule forbids, with what the registry and the schemas themselves say of it."""
        latest = self._http.ask("GET", _path(subject, "/versions/latest"))
        if not latest.is_good:
            return self._failed(subject, answer)
        said = "; ".join(map(str, answer.body.get("messages", ()))) or answer.message
        if answer.is_good and not answer.body.get("messages"):
            said = "it is not compatible"
        return refused(subject, self._level(subject), wanted.difference(json.loads(latest.body["schema"])), said)

    def _failed(self, subject: str, answer: RegistryResponse) -> SinkError:
        return SinkError(
            f"the schema registry answers with status {answer.status}: {answer.message}",
            where=f"{subject} at {self._settings.address.shown}",
            remedy="see the registry's log, and whether the address is that of its API",
        )


def _body(wanted: Wanted) -> dict[str, str]:
    """A schema as a request has it; Avro is what a registry takes for granted."""
    return {"schema": wanted.text, **({} if wanted.language == AVRO else {"schemaType": wanted.language})}


def _path(subject: str, rest: str = "") -> str:
    return f"/subjects/{quote(subject, safe='')}{rest}"
