"""The faults of the reference engine that `compat.faults` repeats: what each does, where it is, and what shows it.

Code that repeats one asks for it by its name: `Fault.UNSIGNED_SCALES in config[COMPAT_FAULTS]`. A fault that no
recording shows is not repeated.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from tailrace.config.kinds import InvalidValue, Kind, split_list

_DEBEZIUM, _DRIVER, _KAFKA = "Debezium 3.6.1.Final", "pgjdbc 42.7.11", "Kafka 4.3.0"
_POSTGRES, _CHANGE_TABLES, _MONGODB = ("postgres",), ("sqlserver", "db2"), ("mongodb",)
_SQL = (*_POSTGRES, *_CHANGE_TABLES)


@dataclass(frozen=True)
class Facts:
    """What is known of a fault.

    `connectors` have it; `place` is the class upstream and what in it, `version` that of the program it belongs to.
    `effect` is one sentence. `recording` is a folder of tests/golden, whose events differ without the fault.
    """

    connectors: tuple[str, ...]
    effect: str
    place: str
    recording: str
    version: str = _DEBEZIUM


class Fault(Enum):
    """The faults: those of keys and rows, of types, of defaults, and of what is captured."""

    ZERO_OLD_KEYS = Facts(
        _POSTGRES,
        "A key column that an old row lacks counts as zero, so that an update looks like a change of the key.",
        "RelationalChangeRecordEmitter.emitUpdateRecord",
        "postgres/replica-identity",
    )
    KEYS_OF_ANY_INDEX = Facts(
        _POSTGRES,
        "Without a primary key the first unique index is the key, also one that is partial, over nullable columns or "
        "with columns that it only includes.",
        "JdbcConnection.readTableUniqueIndices",
        "postgres/unique-index-keys",
    )
    KEYS_OF_PRIMARY_ALONE = Facts(
        ("db2",),
        "In the log a table with a unique index and no primary key has no key, which it has in snapshots.",
        "Db2Connection.getTableSchemaFromTable",
        "db2/no-pk",
    )
    ZERO_HIDDEN_KEYS = Facts(
        _SQL,
        "Keys of first and blocking snapshots have zeros in columns that are excluded from values.",
        "RelationalSnapshotChangeEventSource.getPreparedColumnNames",
        "sqlserver/column-exclude-key",
    )
    COLLIDING_DOCUMENT_KEYS = Facts(
        _MONGODB,
        "Under the regex naming strategies keys have the `id` alone, so that documents of several collections collide "
        "in a topic that these share.",
        "MongoDbSchema.schemaFor",
        "mongodb/regex-naming",
    )
    ZERO_OLD_VALUES = Facts(
        _SQL,
        "Where `skip.messages.without.change` compares rows, a required value that the log lacks counts as its default "
        "or zero, so that an update that set it to that is left out.",
        "RelationalChangeRecordEmitter.emitUpdateRecord",
        "sqlserver/update-of-nothing",
    )
    MASKED_PLACEHOLDERS = Facts(
        _SQL,
        "Masks hash, cut and replace the placeholder of a large value that the log did not repeat.",
        "MaskStrings.create",
        "postgres/masks-toast",
    )
    BASE64_WITHOUT_PLACEHOLDER = Facts(
        _POSTGRES,
        "An unchanged large BYTEA is null, and not the placeholder, under `binary.handling.mode=base64`.",
        "JdbcValueConverters.convertBinaryToBase64",
        "postgres/toast-binary-base64",
    )
    ARRAYS_WITHOUT_PLACEHOLDER = Facts(
        _POSTGRES,
        "Unchanged large arrays are null, and not the placeholder, but those of a few types.",
        "UnchangedToastedReplicationMessageColumn.setUnchangedToastedValue",
        "postgres/toast-binary-base64",
    )
    MESSAGES_NAMED_BY_OBJECT = Facts(
        _POSTGRES,
        "In transaction metadata each logical message is a data collection of its own, named by an object's address.",
        "LogicalDecodingMessageMonitor.LogicalDecodingMessageId",
        "postgres/logical-messages-filtered",
    )
    NULL_NAMES = Facts(
        _POSTGRES,
        "NAME columns are null in events of the log, unless `include.unknown.datatypes` is set.",
        "ReplicationMessageColumnValueResolver.resolveValue",
        "postgres/dates-of-the-driver",
    )
    UNSIGNED_SCALES = Facts(
        _POSTGRES,
        "A negative scale is read as 2048 more, so that `numeric(5,-2)` has 2046 digits after the point.",
        "TypeInfoCache.getScale",
        "postgres/types-numeric-negative-scale",
        _DRIVER,
    )
    DRIVER_DATES = Facts(
        _POSTGRES,
        "Dates in snapshots and arrays lose their era and are moved by ten days between 1582-10-05 and 1582-10-14; the "
        "infinite ones are others than in the log.",
        "TimestampUtils.toDate",
        "postgres/dates-of-the-driver",
        _DRIVER,
    )
    DRIVER_TIMES = Facts(
        _POSTGRES,
        "In arrays TIME is cut to milliseconds and TIMETZ, unless it is a struct, to seconds, timestamps before "
        "1582-10-15 are of the Julian calendar, and those with a zone lose their era.",
        "TimestampUtils.toTimestamp",
        "postgres/times-in-arrays",
        _DRIVER,
    )
    NULL_BIT_ARRAYS = Facts(
        _POSTGRES,
        "Arrays of BIT are null, under the schema of one bit string.",
        "PostgresValueConverter.schemaBuilder",
        "postgres/types-arrays",
    )
    UNMAPPED_DOMAIN_ARRAYS = Facts(
        _POSTGRES,
        "Arrays of a domain are left out.",
        "PostgresValueConverter.schemaBuilder",
        "postgres/propagate-types",
    )
    REQUIRED_ELEMENTS = Facts(
        _POSTGRES,
        "Elements of enums, TSVECTOR, vectors and unmapped types are required, so that an array with a null is null.",
        "PostgresValueConverter.schemaBuilder",
        "postgres/types-arrays",
    )
    GEOMETRIES_OF_DOUBLES = Facts(
        _POSTGRES,
        "The texts of unmapped geometric types, such as LINE, have all numbers as Java prints doubles (`1.0`).",
        "PGline.getValue",
        "postgres/types-unknown-included",
        _DRIVER,
    )
    EARLY_TIMES_WITHOUT_DATE = Facts(
        (*_SQL, *_MONGODB),
        "Connect's dates and times before 1970-01-02 are texts without a date in headers and after Cast.",
        "org.apache.kafka.connect.data.Values.dateFormatFor",
        "postgres/transform-headers-simple",
        _KAFKA,
    )
    ZERO_FUNCTION_DEFAULTS = Facts(
        _POSTGRES,
        "An optional column whose default is a function has zero as default, which converters write for null.",
        "PostgresDefaultValueConverter.parseDefaultValue",
        "postgres/default-expressions",
    )
    DEFAULTS_CUT_AT_QUOTE = Facts(
        _POSTGRES,
        "A default is the text up to the next quote, or else the whole expression.",
        "PostgresDefaultValueConverter.extractDefault",
        "postgres/default-expressions",
    )
    OUTERMOST_DEFAULTS = Facts(
        _POSTGRES,
        "Defaults that are infinite, or 24:00, are shown as other instants than the values have.",
        "PostgresDefaultValueConverter.convertDefaultValue",
        "postgres/default-expressions",
    )
    DOUBLED_QUOTES = Facts(
        ("db2",),
        "The default of a text column is its SQL, so that quotes in it are doubled and a register is a text.",
        "Db2DefaultValueConverter.parseDefaultValue",
        "db2/types-strings-binary",
    )
    STRUCTURES_WITHOUT_DDL = Facts(
        _CHANGE_TABLES,
        "Changes of structure in the log have the statement `N/A`, and in Db2 an empty name of the database.",
        "SqlServerSchemaChangeEventEmitter.emitSchemaChangeEvent",
        "db2/table-added",
    )
    PLAIN_KEYS = Facts(
        _SQL,
        "Masks and truncation change values, but not keys.",
        "TableSchemaBuilder.createKeyGenerator",
        "postgres/masks-of-keys",
    )
    MASKS_OF_CHARACTERS = Facts(
        _SQL,
        "Hashes and asterisks replace character types alone, not JSON, UUID or other types that become text.",
        "ColumnMappers.Builder.maskStrings",
        "postgres/masks-of-types",
    )
    UNDESCRIBED_HIDDEN_KEYS = Facts(
        _POSTGRES,
        "In keys of the log, columns that are excluded from values are optional and have no default.",
        "PgOutputMessageDecoder.handleRelationMessage",
        "postgres/column-exclude-key",
    )
    UNCHANGED_HIDDEN_KEYS = Facts(
        _SQL,
        "`skip.messages.without.change` leaves out the change of a key column that is excluded from values.",
        "RelationalChangeRecordEmitter.emitUpdateRecord",
        "postgres/column-exclude-key",
    )
    KEYS_OF_NO_COLUMNS = Facts(
        _SQL,
        "Under the regex naming strategies a table without a key has its name alone as key.",
        "TableSchemaBuilder.create",
        "postgres/regex-no-key",
    )
    KEYS_BY_SHOWN_NAMES = Facts(
        _SQL,
        "`message.key.columns` compares the name of a table as it is shown, not its full name.",
        "Key.CustomKeyMapper.getInstance",
        "postgres/message-key-columns-database",
    )
    LABELS_OF_START = Facts(
        _POSTGRES,
        "Labels that are added to an enum are not shown before the next start.",
        "TypeRegistry.prime",
        "postgres/enum-label-added",
    )
    UNREAD_COMMENTS = Facts(
        (*_POSTGRES, "sqlserver"),
        "`include.schema.comments` has no effect, as no comments are read.",
        "JdbcConnection.readTableColumn",
        "postgres/schema-comments",
    )
    UNORDERED_SNAPSHOTS = Facts(
        _SQL,
        "`snapshot.tables.order.by.row.count` has no effect unless tables are read in chunks.",
        "RelationalSnapshotChangeEventSource.createDataEvents",
        "postgres/order-by-row-count",
    )
    EXCLUDED_AS_UNKNOWN = Facts(
        _SQL,
        "The notification of a table that a signal names and the lists exclude has the status UNKNOWN_SCHEMA, and of "
        "blocking snapshots none is sent.",
        "AbstractIncrementalSnapshotChangeEventSource.readChunk",
        "postgres/signal-excluded",
    )
    NULL_EMPTY_BITS = Facts(
        _POSTGRES,
        "An empty VARBIT(1) is null.",
        "PostgresValueConverter.convertBit",
        "postgres/arrays-rare",
    )
    EMPTY_VECTORS = Facts(
        _POSTGRES,
        "OIDVECTOR and INT2VECTOR have no elements.",
        "PgArray.buildArray",
        "postgres/arrays-rare",
        _DRIVER,
    )
    NUMBERS_WITHOUT_NAN = Facts(
        _POSTGRES,
        "An array of NUMERIC with NaN or an infinity is null.",
        "PgArray.buildArray",
        "postgres/arrays-rare",
        _DRIVER,
    )
    UNKNOWN_WITHOUT_ARRAYS = Facts(
        _POSTGRES,
        "`include.unknown.datatypes` does not include arrays of MONEY, INTERVAL, POINT, VARBIT, NAME and XML.",
        "PostgresValueConverter.schemaBuilder",
        "postgres/arrays-unknown",
    )
    UNEQUAL_BITS = Facts(
        _POSTGRES,
        "`ExtractChangedRecordState` lists bit strings as changed in each update.",
        "ExtractChangedRecordState.apply",
        "postgres/changed-bits",
    )
    EMPTY_STRUCTS = Facts(
        (*_SQL, *_MONGODB),
        "The schema of a struct that `ExtractNewRecordState` adds has no fields while it is null.",
        "ExtractNewRecordState.updateSchema",
        "postgres/unwrap-add-transaction",
    )
    FIRST_PAYLOAD_NAMES = Facts(
        (*_SQL, *_MONGODB),
        "Outbox events with the same fields have the schema name of the first of them, whatever their aggregate.",
        "EventRouterDelegate.getValueSchema",
        "postgres/outbox-aggregates",
    )
    LISTS_OF_STAGES = Facts(
        _MONGODB,
        "The stream's stages take `database.include.list` as parts of names and no `database.exclude.list`, and let "
        "signals through alone if no list is set; without them (`user_only`) no "
        "list of databases and no `skipped.operations` counts.",
        "ChangeStreamPipelineFactory.createDatabaseAndCollectionRegexFilters",
        "mongodb/skipped-user-only",
    )
    RULES_OF_OUTER_FIELDS = Facts(
        _MONGODB,
        "In updates `field.exclude.list` and `field.renames` reach fields that the named one is in, not those in it.",
        "FieldSelector.Path.modifyFieldsWithDotNotation",
        "mongodb/field-exclude-kinds",
    )
    LATE_STRUCTURES = Facts(
        ("db2",),
        "Structures of tables that `snapshot.include.collection.list` leaves out come with the log.",
        "RelationalSnapshotChangeEventSource.determineCapturedTables",
        "db2/snapshot-include-structures",
    )
    BITS_FROM_START = Facts(
        ("sqlserver",),
        "Bits of an update mask beyond 8 columns are counted from the wrong end.",
        "SqlServerChangeTablePointer",
        "sqlserver/wide-large-values",
    )
    PARTS_OF_KEYS = Facts(
        ("sqlserver",),
        "A key with a column that the capture instance lacks is what it has of the key.",
        "SqlServerConnection.getTableSchemaFromTable",
        "sqlserver/captured-without-key",
    )
    PLAIN_HEX = Facts(
        ("sqlserver",),
        "`hex:` is part of the text of `unavailable.value.placeholder`.",
        "CommonConnectorConfig.getUnavailableValuePlaceholder",
        "sqlserver/placeholder-hex",
    )
    DEFAULTS_CUT_AT_PLACES = Facts(
        ("sqlserver",),
        "Defaults of text columns, bits and numbers are cut out of their definitions at fixed places.",
        "SqlServerDefaultValueConverter.createDefaultValueMappers",
        "sqlserver/defaults-cut",
    )


Faults = frozenset[Fault]
NO_FAULTS: Faults = frozenset()
ALL_FAULTS: Faults = frozenset(Fault)


def _faults(text: str) -> Faults:
    plain = text.strip().lower()
    if plain in ("true", "false"):
        return ALL_FAULTS if plain == "true" else NO_FAULTS
    names = [name.upper() for name in split_list(text)]
    wrong = [name for name in names if name not in Fault.__members__]
    if wrong:
        raise InvalidValue(
            f"Either 'true', 'false' or names of faults are expected, and {wrong[0]} is none",
            f"the names are {', '.join(Fault.__members__).lower()}",
        )
    return frozenset(Fault[name] for name in names)


FAULTS = Kind("boolean, or a list of faults", _faults)
