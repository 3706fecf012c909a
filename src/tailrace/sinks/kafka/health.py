"""Asks Kafka whether it is there, within seconds and without a record: for a run and for `tailrace status`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tailrace.sinks.kafka.client import Settings, library

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

# What librdkafka logs of a lost connection is told by its answer.
_QUIET = {"log_level": 1}


class KafkaProbe:
    """Implements Probe by one client that stays connected."""

    def __init__(self, settings: Settings) -> None:
        library()
        from confluent_kafka.admin import AdminClient

        self._servers = settings.servers
        self._reason: str | None = None
        properties: dict[str, Any] = {**settings.connection, **_QUIET, "error_cb": self._failed}
        self._client = AdminClient(properties)

    def look(self, seconds: float) -> tuple[str, bool] | None:
        """Why the brokers cannot be reached, and whether that may pass; None where they answer."""
        kafka = library()
        self._reason = None
        try:
            self._client.describe_cluster(request_timeout=seconds).result()
        except kafka.KafkaException as error:
            self._client.poll(0)  # has librdkafka tell what it knows of the connections
            reason = self._reason or error.args[0].str()
            return f"Kafka at {self._servers} does not answer: {reason}", self._reason is not None
        return None

    def _failed(self, error: KafkaError) -> None:
        # Of all brokers: the reason is that of one of them.
        if error.name() != "_ALL_BROKERS_DOWN":
            self._reason = error.str()
