"""Kafka Connect's transforms of whole structs: Flatten and SetSchemaMetadata."""

from __future__ import annotations

from collections.abc import Iterator

from tailrace.config.kinds import FLAG, POSITIVE_INT, TEXT, optional
from tailrace.errors import TransformError
from tailrace.events.records import RecordPart, Records
from tailrace.override import override
from tailrace.transforms.apache import Sided
from tailrace.transforms.fields import rebuilt, with_default
from tailrace.transforms.settings import Given, Options, setting

_DELIMITER = setting("delimiter", TEXT, ".")
_SCHEMA_NAME = setting("schema.name", optional(TEXT))
_SCHEMA_VERSION = setting("schema.version", optional(POSITIVE_INT))
_REPLACE_NULL_WITH_DEFAULT = setting("replace.null.with.default", FLAG, "true")


class Flatten(Sided):
    """Fields of structs within become fields of the struct, their names joined; lists and maps stay."""

    OPTIONS: Options = (_DELIMITER,)

    def __init__(self, given: Given, key: bool) -> None:
        super().__init__(key)
        self.delimiter = given.read(self.OPTIONS)[_DELIMITER]

    @override
    def of_part(self, part: RecordPart, records: Records) -> RecordPart:
        """The flat struct."""
        if part.schema.type != "struct":
            raise TransformError(f"a struct is expected, not {part.schema.type}", where="Flatten")
        return rebuilt(part, list(self._flat(part, "", part.schema.optional)))

    def _flat(self, part: RecordPart, prefix: str, optional: bool) -> Iterator[tuple[str, RecordPart]]:
        for name, field in part.fields():
            loose = optional or field.schema.optional
            if field.schema.type == "struct":
                yield from self._flat(field, f"{prefix}{name}{self.delimiter}", loose)
            else:
                yield prefix + name, RecordPart(field.schema.with_(optional=loose), with_default(field).values)


class SetSchemaMetadata:
    """Gives the schema another name or version; a null under a schema, too."""

    OPTIONS: Options = (
        _SCHEMA_NAME,
        _SCHEMA_VERSION,
        _REPLACE_NULL_WITH_DEFAULT,
    )

    def __init__(self, given: Given, key: bool) -> None:
        self.key = key
        config = given.read(self.OPTIONS)
        self.changes: dict[str, str | int] = {}
        name, version = config[_SCHEMA_NAME], config[_SCHEMA_VERSION]
        if name:
            self.changes["name"] = name
        if version is not None:
            self.changes["version"] = version
        if not self.changes:
            raise given.problem("schema.name", "Neither schema name nor version configured", "give one of the two")

    def apply(self, records: Records) -> list[Records]:
        """The records under the other schema."""
        part = records.key if self.key else records.value
        if part is None:
            return [records]
        made = RecordPart(part.schema.with_(**self.changes), part.column, part.text)
        return [records.with_(key=made) if self.key else records.with_(value=made)]
