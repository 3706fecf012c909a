"""Declares the fields of `source` and of the envelope around it, as data."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace

from tailrace.model.schema import INT64, OPTIONAL_INT64, OPTIONAL_STRING, STRING, ConnectSchema, Field

# Members of an envelope whose schemas depend on the table and on the connector.
BEFORE, AFTER, SOURCE = "before", "after", "source"

TRANSACTION_BLOCK = ConnectSchema(
    "struct",
    optional=True,
    name="event.block",
    version=1,
    fields=(Field("id", STRING), Field("total_order", INT64), Field("data_collection_order", INT64)),
)
SNAPSHOT = ConnectSchema(
    "string",
    optional=True,
    name="io.debezium.data.Enum",
    version=1,
    parameters=(("allowed", "true,first,first_in_data_collection,last_in_data_collection,last,false,incremental"),),
    default="false",
)
# Of Debezium 2.3, which had fewer places in a snapshot.
FEWER_PLACES = SNAPSHOT.with_(parameters=(("allowed", "true,last,false,incremental"),))
COMMON_SOURCE = (
    Field("version", STRING),
    Field("connector", STRING),
    Field("name", STRING),
    Field("ts_ms", INT64),
    Field("snapshot", SNAPSHOT),
    Field("db", STRING),
    Field("sequence", OPTIONAL_STRING),
    Field("ts_us", OPTIONAL_INT64),
    Field("ts_ns", OPTIONAL_INT64),
)
OLD_SNAPSHOT = ConnectSchema("boolean", optional=True, default=False)
_TRANSACTION = Field("transaction", TRANSACTION_BLOCK)
_FINE_CLOCKS = ("ts_us", "ts_ns")


@dataclass(frozen=True, slots=True)
class EnvelopeLayout:
    """The members of an envelope, in order.

    A text is one of BEFORE, AFTER and SOURCE. `transaction`, `op`, `ts_ms`, `ts_us` and `ts_ns` are filled by the
    encoders; any other field from the change batch's column of that name, null where there is none. `is_document`: row
    images are the text of the table's one value column instead of a struct of columns.
    """

    members: tuple[str | Field, ...]
    version: int | None = None
    is_document: bool = False


ROW_ENVELOPE = EnvelopeLayout(
    (
        BEFORE,
        AFTER,
        SOURCE,
        _TRANSACTION,
        Field("op", STRING),
        Field("ts_ms", OPTIONAL_INT64),
        Field("ts_us", OPTIONAL_INT64),
        Field("ts_ns", OPTIONAL_INT64),
    ),
    version=2,
)


@dataclass(frozen=True, slots=True)
class OffsetEntries:
    """How many entries the reference's partition and offset of a change have, by whether it is of a snapshot.

    Each column of the batch's `source` struct that `present` names adds one where it is not null; a name may be listed
    twice. Some transforms of the reference measure records by these.
    """

    streamed: int = 0
    snapshot: int = 0
    incremental: int = 0
    present: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SourceBlock:
    """What one connector's `source` struct and envelopes look like.

    `source` has the fields of `common`, then those of `fields`. `db`, `schema`, `table` and `collection` are parts of
    the batch's TableId, the other common fields are filled by the encoders, and the rest comes from the columns of the
    same names in the batch's `source` struct. Such columns are also what the following names:
    `sequence`: two columns, whose texts make the JSON array of `source.sequence`; None leaves it null.
    `transaction_id`: their texts, joined by `:`, are the id in a `transaction` block.
    `position`: their texts, joined by `/`, are the position in rows of the shape `event`; numbers become hexadecimal.

    `event_id`: labels and columns, or common fields, of which the id of a CloudEvent consists after the server's name.

    `message_schemas` is what the names of the schemas of logical messages begin with. `change_id` are the parts of a
    table's id in schema changes. `is_old`: records are as Debezium 1 wrote them. `offset` says how large the
    reference's offsets are.
    """

    connector: str
    schema_name: str
    fields: tuple[Field, ...]
    sequence: tuple[str, str] | None = None
    _: KW_ONLY
    transaction_id: tuple[str, ...] = ()
    message_schemas: str = ""
    event_id: tuple[tuple[str, str], ...] = ()
    is_old: bool = False
    position: tuple[str, ...] = ()
    envelope: EnvelopeLayout = ROW_ENVELOPE
    common: tuple[Field, ...] = COMMON_SOURCE
    version: int | None = 1
    change_id: tuple[str, ...] = ("database", "schema", "table")
    offset: OffsetEntries = OffsetEntries()

    @property
    def members(self) -> tuple[Field, ...]:
        """All fields of `source`, in order."""
        return self.common + self.fields

    @property
    def snapshot(self) -> ConnectSchema:
        """The schema of `source.snapshot`."""
        return next(field.schema for field in self.common if field.name == "snapshot")

    @property
    def schema(self) -> ConnectSchema:
        """The schema of `source`."""
        return ConnectSchema("struct", name=self.schema_name, version=self.version, fields=self.members)

    def as_old(self, fields: tuple[Field, ...], *, has_transaction: bool) -> SourceBlock:
        """The block as Debezium 1 had it (`compat.version`), with these fields of the connector's own.

        No schema versions, no `ts_us` and `ts_ns`, a boolean `snapshot`, and `transaction` only if it is configured.
        """
        return replace(self._coarse(OLD_SNAPSHOT, has_transaction=has_transaction), fields=fields, is_old=True)

    def as_of_2(self, *, has_transaction: bool) -> SourceBlock:
        """The block as Debezium 2.3 had it (`compat.version`): as `as_old`, but with the places of rows in a snapshot.

        Nor has it a `sequence`.
        """
        block = self._coarse(FEWER_PLACES, has_transaction=has_transaction)
        return replace(block, common=tuple(each for each in block.common if each.name != "sequence"))

    def _coarse(self, snapshot: ConnectSchema, *, has_transaction: bool) -> SourceBlock:
        """Without fine clocks and versions of schemas, and with another `snapshot`."""
        coarse = [member for member in self.common if member.name not in _FINE_CLOCKS]
        members = [each for each in self.envelope.members if isinstance(each, str) or each.name not in _FINE_CLOCKS]
        return replace(
            self,
            common=tuple(Field("snapshot", snapshot) if each.name == "snapshot" else each for each in coarse),
            version=None,
            envelope=EnvelopeLayout(tuple(each for each in members if has_transaction or each != _TRANSACTION)),
        )
