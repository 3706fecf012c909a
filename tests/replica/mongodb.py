"""Collections of MongoDB as a replica has to hold them: documents by their bytes, whole or as declared columns."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa
from bson.codec_options import CodecOptions
from bson.raw_bson import RawBSONDocument
from pymongo import MongoClient

from tailrace.connectors.mongodb.declared import Declaration, declared_fields, parse_declarations
from tailrace.model.table import TableId
from tailrace.model.table_id import DATABASE_TABLE
from tailrace.override import override
from tests.replica.bson_text import RELAXED, STRICT, Number, Reader, Special, parsed, shown
from tests.replica.content import Comparison, Row, SourceTable
from tests.replica.lists import matches

_OWN = ("admin", "config", "local")
_RAW: CodecOptions[RawBSONDocument] = CodecOptions(document_class=RawBSONDocument)
_MODES = {"legacy": STRICT, "extended": "canonical"}
_UNKNOWN = ("field.exclude.list", "field.renames", "cursor.pipeline", "key.json.mode")
_EPOCH = datetime(1970, 1, 1)
_EXACT = Context(prec=200)
DOCUMENT, ID, KEY, REST = "document", "id", "_key", "_rest"


@dataclass(frozen=True)
class Captured:
    """Which collections the properties choose. Raises ValueError for properties whose effect is not described here."""

    properties: Mapping[str, str]

    def __post_init__(self) -> None:
        if unknown := [name for name in _UNKNOWN if name in self.properties]:
            raise ValueError(f"the comparison does not know what these do: {', '.join(unknown)}")

    @property
    def mode(self) -> str:
        """The mode of documents' JSON."""
        given = self.properties.get("json.serialization.mode", "legacy")
        return _MODES.get(given, given)

    @property
    def declarations(self) -> Sequence[Declaration]:
        """The columns that documents are kept in."""
        return parse_declarations(self.properties.get("document.columns"))

    def collection(self, database: str, name: str) -> bool:
        """Whether the lists and the scope choose a collection."""
        full, given = f"{database}.{name}", self.properties
        if full == given.get("signal.data.collection") or name.startswith("system."):
            return False
        scope, target = given.get("capture.scope", "deployment"), given.get("capture.target")
        if (scope == "database" and target != database) or (scope == "collection" and target != full):
            return False
        return self._chosen("database", database) and self._chosen("collection", full)

    def _chosen(self, kind: str, name: str) -> bool:
        included, excluded = (self.properties.get(f"{kind}.{list_}.list") for list_ in ("include", "exclude"))
        return (not included or self._matches(included, name)) and not (excluded and self._matches(excluded, name))

    def _matches(self, listed: str, name: str) -> bool:
        if self.properties.get("filters.match.mode") == "literal":
            return name in [each.strip() for each in listed.split(",")]
        return matches(listed, name)


@dataclass(frozen=True)
class Collection(SourceTable):
    """A collection; `documents` are their bytes.

    `declarations` are the columns that they are kept in. `as_text` is an expression of `database.collection.field`
    whose columns are text that also holds dates and numbers.
    """

    id: TableId
    documents: Sequence[bytes]
    mode: str
    ignored: frozenset[str] = frozenset()
    is_sent: bool = True
    as_text: str = ""
    declarations: Sequence[Declaration] = ()

    @override
    def compare(self, replica: pa.Table | None) -> Comparison:
        if replica is None:
            return Comparison.of([self._whole(data) for data in self.documents], [])
        table = replica.drop_columns([*self.ignored & {*replica.column_names}])
        if KEY not in table.column_names:
            found = [_document_row(row) for row in table.to_pylist()]
            return Comparison.of([self._whole(data) for data in self.documents], found)
        declared = {field.name: field.type for field in declared_fields(self.declarations, self.name)}
        columns = {
            field.name: _declared(field.type, declared.get(field.name))
            for field in table.schema
            if field.name not in (KEY, REST)
        }
        source = [self._split(data, columns) for data in self.documents]
        return Comparison.of(source, [_column_row(row, columns) for row in table.to_pylist()])

    def _whole(self, data: bytes) -> Row:
        return ((DOCUMENT, shown(Reader(self.mode).document(data))), (ID, _key(data)))

    def _split(self, data: bytes, columns: Mapping[str, pa.DataType]) -> Row:
        """A document in columns: what none of them holds is left in the rest, which is relaxed JSON."""
        fields, rest = (Reader(mode).document(data) for mode in (STRICT, RELAXED))
        row: dict[str, str | None] = {KEY: _key(data)}
        rest.pop("_id", None)
        for name, type_ in columns.items():
            row[name] = self._held(name, fields[name], rest[name], type_) if name in rest else None
            if row[name] is not None or (name in rest and rest[name] is None):
                del rest[name]
        return tuple(sorted({**row, REST: shown(rest)}.items()))

    def _held(self, name: str, tree: Any, relaxed: Any, type_: pa.DataType) -> str | None:
        if pa.types.is_string(type_) and matches(self.as_text, f"{self.name}.{name}"):
            return _any_text(tree, relaxed)
        return held(tree, relaxed, type_)


def collections(
    client: MongoClient[Any], captured: Captured, ignored: frozenset[str] = frozenset(), as_text: str = ""
) -> Iterator[SourceTable]:
    """The captured collections of a server. Views and time series have no changes."""
    for database in client.list_database_names():
        if database in _OWN:
            continue
        for found in client[database].list_collections(filter={"type": "collection"}):
            name = found["name"]
            if captured.collection(database, name):
                documents = client[database].get_collection(name, codec_options=_RAW).find()
                id_ = TableId(database, "", name, DATABASE_TABLE)
                raw = [bytes(document.raw) for document in documents]  # of a large document it is a memoryview
                yield Collection(
                    *(id_, raw, captured.mode, ignored), as_text=as_text, declarations=captured.declarations
                )


def held(tree: Any, relaxed: Any, type_: pa.DataType) -> str | None:
    """A value in a column of that type, as `_native` shows the replica's, None if the column does not hold it.

    `tree` is the value in strict JSON, `relaxed` in relaxed JSON, which texts of documents and arrays are.
    """
    if pa.types.is_struct(type_):
        return _struct(tree, relaxed, type_)
    if pa.types.is_list(type_):
        return _list(tree, relaxed, type_)
    if pa.types.is_string(type_) or pa.types.is_large_string(type_):
        return _string(tree, relaxed)
    if pa.types.is_boolean(type_):
        return str(tree) if isinstance(tree, bool) else None
    if pa.types.is_binary(type_) or pa.types.is_large_binary(type_):
        is_binary = isinstance(tree, Special) and "$binary" in tree
        return base64.b64decode(tree["$binary"]).hex() if is_binary else None
    if pa.types.is_timestamp(type_) or pa.types.is_date(type_):
        return _date(tree, pa.types.is_date(type_))
    return _number(tree, type_)


def _struct(tree: Any, relaxed: Any, type_: pa.DataType) -> str | None:
    names = [type_.field(place).name for place in range(type_.num_fields)]
    if not isinstance(tree, dict) or isinstance(tree, Special) or not {*tree} <= {*names}:
        return None
    values = {}
    for name in names:
        value = tree.get(name)
        values[name] = None if value is None else held(value, relaxed[name], type_.field(name).type)
        if value is not None and values[name] is None:
            return None
    return repr(values)


def _list(tree: Any, relaxed: Any, type_: pa.DataType) -> str | None:
    if not isinstance(tree, list):
        return None
    both = zip(tree, relaxed, strict=True)
    values = [None if value is None else held(value, other, type_.value_type) for value, other in both]
    fits = all(value is None or kept is not None for value, kept in zip(tree, values, strict=True))
    return repr(values) if fits else None


def _string(tree: Any, relaxed: Any) -> str | None:
    if isinstance(tree, Special) and set(tree) == {"$oid"}:
        return str(tree["$oid"])
    if isinstance(tree, list) or (isinstance(tree, dict) and not isinstance(tree, Special)):
        return shown(relaxed)
    return _json_or_text(tree) if isinstance(tree, str) else None


def _any_text(tree: Any, relaxed: Any) -> str | None:
    """A value in a column of text that holds dates in ISO 8601, and numbers without a binary fraction, as well."""
    exact = _exact(tree, finite=False)
    if exact is not None and exact[1] != "double":
        return tree["$numberDecimal"] if exact[1] == "decimal" else str(exact[0])
    if isinstance(tree, Special) and isinstance(tree.get("$date"), Number):
        return _far(int(tree["$date"].text))
    return _string(tree, relaxed)


def _far(millis: int) -> str:
    """A moment of any year in ISO 8601, `+33658-09-27T01:46:40Z`: 400 years have 146,097 days."""
    days, rest = divmod(millis, 86_400_000)
    cycles, day = divmod(days, 146_097)
    moment = _EPOCH + timedelta(days=day)
    year = moment.year + 400 * cycles
    shown_ = f"{year:04d}" if 0 <= year <= 9999 else f"{year:+05d}"
    clock = (_EPOCH + timedelta(milliseconds=rest)).time()
    fraction = f".{rest % 1000:03d}".rstrip("0") if rest % 1000 else ""
    return f"{shown_}-{moment:%m-%d}T{clock:%H:%M:%S}{fraction}Z"


def _date(tree: Any, is_day: bool) -> str | None:
    if not isinstance(tree, Special) or not isinstance(tree.get("$date"), Number):
        return None
    try:
        moment = _EPOCH + timedelta(milliseconds=int(tree["$date"].text))
    except OverflowError:
        return None
    if is_day:
        return moment.date().isoformat() if moment.time().isoformat() == "00:00:00" else None
    return moment.isoformat()


def _number(tree: Any, type_: pa.DataType) -> str | None:
    exact = _exact(tree)
    if exact is None:
        return _special_double(tree) if pa.types.is_floating(type_) else None
    value, kind = exact
    if pa.types.is_floating(type_):
        if kind == "double":
            return str(tree.text)
        return repr(float(value)) if kind == "integer" and int(float(value)) == value else None
    if pa.types.is_decimal(type_):
        return _decimal(value, type_) if kind != "double" else None
    limit = 2 ** (type_.bit_width - 1)
    fits = kind != "decimal" and value == int(value) and -limit <= value < limit
    return str(int(value)) if fits else None


def _exact(tree: Any, *, finite: bool = True) -> tuple[Decimal, str] | None:
    """A number, a finite one, and its kind; None for anything else."""
    if isinstance(tree, Number):
        is_integer = tree.text.lstrip("-").isdigit()
        value, kind = (Decimal(tree.text), "integer") if is_integer else (Decimal(float(tree.text)), "double")
    elif isinstance(tree, Special) and set(tree) == {"$numberLong"}:
        value, kind = Decimal(tree["$numberLong"]), "integer"
    elif isinstance(tree, Special) and set(tree) == {"$numberDecimal"}:
        value, kind = Decimal(tree["$numberDecimal"]), "decimal"
    else:
        return None
    return (value, kind) if value.is_finite() or not finite else None


def _special_double(tree: Any) -> str | None:
    return tree.text if isinstance(tree, Number) else None


def _decimal(value: Decimal, type_: pa.DataType) -> str | None:
    """A decimal in a column's digits: its own number of zeros, and the sign of zero, are not kept."""
    kept = _EXACT.quantize(value, Decimal(1).scaleb(-type_.scale)) if abs(value.adjusted()) <= 76 or not value else None
    if kept is None or kept != value or len(kept.as_tuple().digits) > type_.precision:
        return None
    return format(kept if kept else abs(kept), "f")


def _key(data: bytes) -> str:
    return shown(Reader(RELAXED).document(data)["_id"])


def _document_row(row: Mapping[str, Any]) -> Row:
    """A row of a replica with whole documents."""
    return tuple((name, None if text is None else shown(parsed(text))) for name, text in sorted(row.items()))


def _column_row(row: Mapping[str, Any], columns: Mapping[str, pa.DataType]) -> Row:
    shown_ = {name: None if row[name] is None else _native(row[name], type_) for name, type_ in columns.items()}
    more = {name: None if row[name] is None else shown(parsed(row[name])) for name in (KEY, REST)}
    return tuple(sorted({**shown_, REST: more[REST] or shown({}), KEY: more[KEY]}.items()))


def _declared(type_: pa.DataType, declared: pa.DataType | None) -> pa.DataType:
    """A database has structs, and lists of lists, as JSON, which holds what the declared type does."""
    is_json = pa.types.is_string(type_) and declared is not None and pa.types.is_nested(declared)
    return declared if is_json else type_


def _native(value: Any, type_: pa.DataType) -> str:
    if isinstance(value, str) and pa.types.is_nested(type_):
        value = pa.scalar(json.loads(value), type_).as_py()
    if isinstance(value, dict):
        return repr({name: _inner(each, type_.field(name).type) for name, each in value.items()})
    if isinstance(value, list):
        return repr([_inner(each, type_.value_type) for each in value])
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, datetime):
        return (value.astimezone(timezone.utc).replace(tzinfo=None) if value.tzinfo else value).isoformat()
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, str):
        return _json_or_text(value)
    return format(value, "f") if isinstance(value, Decimal) else str(value)


def _json_or_text(value: str) -> str:
    """A column of strings has documents as JSON, and strings that look like it."""
    if value[:1] not in ("{", "["):
        return value
    try:
        return shown(parsed(value))
    except ValueError:
        return value


def _inner(value: Any, type_: pa.DataType) -> str | None:
    return None if value is None else _native(value, type_)
