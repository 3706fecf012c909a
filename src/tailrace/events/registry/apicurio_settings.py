"""The settings of Apicurio's converter for keys or values, by its properties."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from tailrace.config import Config
from tailrace.config.option import Option
from tailrace.config.options.apicurio import (
    APICURIO_ARTIFACT_ARTIFACT_ID,
    APICURIO_ARTIFACT_GROUP_ID,
    APICURIO_ARTIFACT_RESOLVER_STRATEGY,
    APICURIO_AS_CONFLUENT,
    APICURIO_AUTH_CLIENT_ID,
    APICURIO_AUTH_CLIENT_SCOPE,
    APICURIO_AUTH_CLIENT_SECRET,
    APICURIO_AUTH_ENDPOINT,
    APICURIO_AUTH_PASSWORD,
    APICURIO_AUTH_USERNAME,
    APICURIO_AUTO_REGISTER,
    APICURIO_AUTO_REGISTER_IF_EXISTS,
    APICURIO_DEREFERENCE_SCHEMA,
    APICURIO_FIND_LATEST,
    APICURIO_HEADERS_ENABLED,
    APICURIO_ID_HANDLER,
    APICURIO_URL,
    APICURIO_USE_ID,
    EIGHT_BYTES,
    FOUR_BYTES,
)
from tailrace.config.options.registry_clients import (
    APICURIO_PROXY_HOST,
    APICURIO_PROXY_PASSWORD,
    APICURIO_PROXY_PORT,
    APICURIO_PROXY_USERNAME,
    APICURIO_REQUEST_HEADERS,
    APICURIO_TLS,
    APICURIO_TRUST_ALL,
    APICURIO_VERIFY_HOST,
)
from tailrace.events.registry.confluent import record_name
from tailrace.events.registry.http import (
    Address,
    given_headers,
    proxy_url,
    split_url,
)
from tailrace.events.registry.oauth import Credentials
from tailrace.events.registry.registry import Wanted

PATH_3, PATH_2 = "/apis/registry/v3", "/apis/registry/v2"
DEFAULT = "default"


@dataclass(frozen=True)
class ApicurioSettings:
    """The settings of Apicurio's converter for keys or values; `prefix` is what its properties begin with.

    `whole`: a schema is one artifact; otherwise each record in it is one of its own. `in_headers`: the ids are in
    headers and not, as `id_bytes` bytes, before each datum.
    """

    prefix: str
    address: Address
    strategy: str
    registers: bool
    _: KW_ONLY
    if_exists: str
    takes_latest: bool
    whole: bool
    group: str | None
    artifact: str | None
    id_name: str
    id_bytes: int
    in_headers: bool

    @staticmethod
    def of(config: Config, within: str) -> ApicurioSettings:
        """As the properties of the converter `within` say; for API 2 the defaults are those of its converter."""
        own, prefix = config.within(within), f"{within}.apicurio.registry."
        address = _address(own, prefix)
        is_2 = address.urls[0].endswith(PATH_2)

        return ApicurioSettings(
            prefix,
            address,
            own[APICURIO_ARTIFACT_RESOLVER_STRATEGY].rpartition(".")[2],
            registers=own[APICURIO_AUTO_REGISTER],
            if_exists=own[APICURIO_AUTO_REGISTER_IF_EXISTS],
            takes_latest=own[APICURIO_FIND_LATEST],
            whole=_flag(own, APICURIO_DEREFERENCE_SCHEMA, is_2),
            group=own[APICURIO_ARTIFACT_GROUP_ID],
            artifact=own[APICURIO_ARTIFACT_ARTIFACT_ID],
            id_name=own[APICURIO_USE_ID] or ("globalId" if is_2 else "contentId"),
            id_bytes=_id_bytes(own, is_2),
            in_headers=_flag(own, APICURIO_HEADERS_ENABLED, is_2),
        )

    def place(self, wanted: Wanted) -> tuple[str, str]:
        """The group and the name of a schema's artifact."""
        group, name = self._named(wanted)
        return self.group or group or DEFAULT, self.artifact or name

    def group_of(self, record: str) -> str:
        """The group of a record within a schema."""
        by_record = self.strategy in ("RecordIdStrategy", "TopicRecordIdStrategy")
        return self.group or (record.rpartition(".")[0] if by_record else None) or DEFAULT

    def _named(self, wanted: Wanted) -> tuple[str | None, str]:
        if self.strategy == "TopicIdStrategy":
            return None, f"{wanted.topic}-{wanted.part}"
        if self.strategy == "SimpleTopicIdStrategy":
            return None, wanted.topic
        full = record_name(wanted)
        if self.strategy == "QualifiedRecordIdStrategy":
            return None, full
        space, _, short = full.rpartition(".")
        return space or None, short if self.strategy == "RecordIdStrategy" else f"{wanted.topic}-{short}"


def _id_bytes(own: Config, is_2: bool) -> int:
    handler = own[APICURIO_ID_HANDLER]
    if own[APICURIO_AS_CONFLUENT] or handler in FOUR_BYTES:
        return 4
    return 8 if handler in EIGHT_BYTES or is_2 else 4


def _flag(own: Config, option: Option[bool | None], otherwise: bool) -> bool:
    value = own[option]
    return otherwise if value is None else value


def _address(own: Config, prefix: str) -> Address:
    url, user = split_url(own.need(APICURIO_URL), f"{prefix}url")
    who, password = own[APICURIO_AUTH_USERNAME], own[APICURIO_AUTH_PASSWORD]
    if not url.endswith((PATH_3, PATH_2)):
        url += PATH_3
    return Address(
        (url,),
        None if own[APICURIO_AUTH_ENDPOINT] else (who, password or "") if who else user,
        None,
        own[APICURIO_TLS.truststore],
        own=own[APICURIO_TLS.keystore],
        key_password=own[APICURIO_TLS.key_password],
        login=f"{prefix}auth.username and {prefix}auth.password",
        truststore=f"{prefix}tls.truststore.location",
        client=_client(own, prefix),
        headers=given_headers(own, APICURIO_REQUEST_HEADERS),
        checks_name=own[APICURIO_VERIFY_HOST],
        trusts_all=own[APICURIO_TRUST_ALL],
        proxy=proxy_url(
            own[APICURIO_PROXY_HOST],
            own[APICURIO_PROXY_PORT],
            own[APICURIO_PROXY_USERNAME],
            own[APICURIO_PROXY_PASSWORD],
        ),
    )


def _client(own: Config, prefix: str) -> Credentials | None:
    endpoint = own[APICURIO_AUTH_ENDPOINT]
    if endpoint is None:
        return None
    return Credentials(
        endpoint,
        own.need(APICURIO_AUTH_CLIENT_ID),
        own.need(APICURIO_AUTH_CLIENT_SECRET),
        own[APICURIO_AUTH_CLIENT_SCOPE],
        login=f"{prefix}auth.client.id and {prefix}auth.client.secret",
    )
