"""Reads Avro records by Apicurio's own Java deserializer, as consumers do: no fastavro and no Tailrace in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

from py4j.java_gateway import JavaGateway, JavaObject

from tailrace.errors import TailraceError
from tailrace.testing.jars import resolve_jars
from tests.servers.java_process import java_process

# The last of version 2, whose converter made the recordings of tests/golden/avro; it needs no other Java than they do.
_SERDE = ("io.apicurio:apicurio-registry-serdes-avro-serde:2.6.13.Final",)


@cache
def why_not_here() -> str | None:
    """Why the deserializer cannot be had on this machine; None once it is in the cache."""
    try:
        resolve_jars(_SERDE)
    except TailraceError as error:
        return str(error)
    return None


class JavaDeserializer:
    """The deserializer in a Java process, with a consumer's properties; of keys or of values."""

    def __init__(self, gateway: JavaGateway, properties: Mapping[str, str], part: str) -> None:
        self._java = gateway.jvm
        self._reader = self._java.io.apicurio.registry.serde.avro.AvroKafkaDeserializer()
        given = self._java.java.util.HashMap()
        for name, value in properties.items():
            given.put(name, value)
        self._reader.configure(given, part == "key")

    def json(self, topic: str, headers: Sequence[Mapping[str, Any]], raw: bytes | None) -> str | None:
        """A record as Avro's JSON encoder prints what was read, in which unions name their branches."""
        if raw is None:
            return None
        own = self._java.org.apache.kafka.common.header.internals.RecordHeaders()
        for each in headers:
            own.add(each["key"], each["value"])
        return self._printed(self._reader.deserialize(topic, own, raw))

    def _printed(self, record: JavaObject) -> str:
        avro, out = self._java.org.apache.avro, self._java.java.io.ByteArrayOutputStream()
        encoder = avro.io.EncoderFactory.get().jsonEncoder(record.getSchema(), out)
        avro.generic.GenericDatumWriter(record.getSchema()).write(record, encoder)
        encoder.flush()
        return str(out.toString("UTF-8"))


@contextmanager
def deserializers() -> Iterator[JavaGateway]:
    """The process of deserializers, which ends with the block."""
    with java_process(resolve_jars(_SERDE)) as gateway:
        yield gateway
