"""The transforms and predicates by the names of Debezium's and Kafka Connect's classes, imported when one is made.

All of them together would take each start of a worker 70 ms, and most configurations have none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from operator import attrgetter
from typing import Any

from tailrace.transforms.settings import Given
from tailrace.transforms.transform import Predicate, Transform

APACHE = "org.apache.kafka.connect.transforms."
_DEBEZIUM = "io.debezium.transforms."
# Debezium's connectors have a package each; a transform there is the same one under every connector's name.
CONNECTOR = "io.debezium.connector.*."


def _imported(path: str) -> Any:
    """What `module:name` names in this package."""
    module, _, name = path.partition(":")
    return attrgetter(name)(import_module(f"{__package__}.{module}"))


def _made_by(path: str) -> Callable[[Given], Any]:
    return lambda given: _imported(path)(given)


def _sided(path: str, *, is_key: bool) -> Callable[[Given], Transform]:
    """One of the two classes of a transform, for keys or for values."""

    def make(given: Given) -> Transform:
        made: Transform = _imported(path)(given, is_key)
        return made

    return make


TRANSFORMS: Mapping[str, Callable[[Given], Transform]] = {
    name: _made_by(path)
    for name, path in {
        _DEBEZIUM + "ExtractNewRecordState": "unwrap:ExtractNewRecordState.of",
        _DEBEZIUM + "ExtractChangedRecordState": "changed:ExtractChangedRecordState.of",
        _DEBEZIUM + "ToLogicalTopicRouter": "logical_table:ToLogicalTopicRouter.of",
        _DEBEZIUM + "ByLogicalTableRouter": "logical_table:ToLogicalTopicRouter.by_table",
        _DEBEZIUM + "partitions.PartitionRouting": "partition:PartitionRouting.of",
        _DEBEZIUM + "HeaderToValue": "header_to_value:HeaderToValue.of",
        _DEBEZIUM + "outbox.EventRouter": "outbox:EventRouter.of",
        _DEBEZIUM + "TimezoneConverter": "timezone:TimezoneConverter.of",
        _DEBEZIUM + "VectorToJsonConverter": "vector:VectorToJson.of",
        _DEBEZIUM + "EnforceRecordSize": "enforce_size:EnforceRecordSize.of",
        _DEBEZIUM + "SwapGeometryCoordinates": "swap_coordinates:SwapGeometryCoordinates.of",
        _DEBEZIUM + "GeometryFormatTransformer": "geometry_format:GeometryFormat.of",
        CONNECTOR + "transforms.DecodeLogicalDecodingMessageContent": "decode_message:DecodeMessageContent.of",
        _DEBEZIUM + "ExtractSchemaToNewRecord": "source_schema:ExtractSchemaToNewRecord.of",
        _DEBEZIUM + "SchemaChangeEventFilter": "schema_changes:SchemaChangeEventFilter.of",
        _DEBEZIUM + "Filter": "scripting:ConditionFilter.of",
        _DEBEZIUM + "ContentBasedRouter": "scripting:ContentBasedRouter.of",
        APACHE + "RegexRouter": "route:Route.from_settings",
        APACHE + "ValueToKey": "apache:ValueToKey.of",
        APACHE + "Filter": "apache:Drop.of",
        APACHE + "DropHeaders": "apache:DropHeaders.of",
        APACHE + "InsertHeader": "apache_headers:InsertHeader.of",
        APACHE + "TimestampRouter": "apache_values:TimestampRouter.of",
    }.items()
} | {
    f"{APACHE}{path.rpartition(':')[2].partition('.')[0]}{side}": _sided(path, is_key=side == "$Key")
    for path in (
        "apache:ReplaceField",
        "apache:InsertField",
        "apache:ExtractField",
        "apache:HoistField",
        "structure:Flatten",
        "structure:SetSchemaMetadata",
        "apache_values:MaskField",
        "apache_headers:HeaderFrom.of",
        "cast:Cast",
        "timestamps:TimestampConverter",
    )
    for side in ("$Key", "$Value")
}
SHORT: Mapping[str, str] = {
    "unwrap": _DEBEZIUM + "ExtractNewRecordState",
    "changes": _DEBEZIUM + "ExtractChangedRecordState",
    "outbox": _DEBEZIUM + "outbox.EventRouter",
    "timezone": _DEBEZIUM + "TimezoneConverter",
}
PREDICATES: Mapping[str, Callable[[Given], Predicate]] = {
    APACHE + "predicates.TopicNameMatches": _made_by("predicates:TopicNameMatches.of"),
    APACHE + "predicates.HasHeaderKey": _made_by("predicates:HasHeaderKey.of"),
    APACHE + "predicates.RecordIsTombstone": _made_by("predicates:RecordIsTombstone.of"),
}
