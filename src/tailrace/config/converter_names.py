"""The classes of converters, by which a configuration names them."""

from __future__ import annotations

_STORAGE = "org.apache.kafka.connect.storage."

JSON = "org.apache.kafka.connect.json.JsonConverter"
SIMPLE, STRING = f"{_STORAGE}SimpleHeaderConverter", f"{_STORAGE}StringConverter"
BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
CONFLUENT_AVRO = "io.confluent.connect.avro.AvroConverter"
APICURIO_AVRO = "io.apicurio.registry.utils.converter.AvroConverter"
CONFLUENT_JSON = "io.confluent.connect.json.JsonSchemaConverter"
APICURIO_JSON = "io.apicurio.registry.utils.converter.ExtJsonConverter"
AVRO = (CONFLUENT_AVRO, APICURIO_AVRO)
CONFLUENT, APICURIO = (CONFLUENT_AVRO, CONFLUENT_JSON), (APICURIO_AVRO, APICURIO_JSON)
CLOUD_EVENTS = "io.debezium.converters.CloudEventsConverter"
BYTES_OR_OTHER = "io.debezium.converters.BinaryDataConverter"

_AS_TEXT = f"take {STRING}, which writes a number as its digits; consumers read it as a text"
_NUMBERS = ("Long", "Integer", "Short", "Double", "Float", "Boolean")
# Real converters, and what to take for them.
OTHERS = {
    **{f"org.apache.kafka.connect.converters.{each}Converter": _AS_TEXT for each in _NUMBERS},
}
