"""PostgreSQL types: from the text the server prints to Connect values, a column at a time.

The log brings text by pgoutput, a chunk of an incremental snapshot by COPY, in the same session settings (see
connect.py), so there is one conversion a type. A whole table comes by ADBC: as such text, too, but for types whose
binary form is nearer to their values. A ValueType says what a column becomes: its Connect schema (required form, no
default), the Arrow type that holds it and the conversion of an Arrow string array. Conversions raise pa.ArrowInvalid
or DecodeError when a value does not fit; who calls them names the column.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from tailrace.config import Config
from tailrace.connectors.postgres import bits, extensions, geometry, instants, numbers, temporal, unmapped
from tailrace.connectors.postgres.binary import AS_IS, Binary
from tailrace.connectors.postgres.catalog_types import PgType
from tailrace.connectors.postgres.protocol import arrays
from tailrace.errors import DecodeError
from tailrace.events.encode.arrow import literal
from tailrace.events.encode.binary import base64
from tailrace.model.schema import ConnectSchema

log = logging.getLogger(__name__)

Convert = Callable[[pa.Array], pa.Array]


@dataclass(frozen=True, slots=True)
class ValueType:
    """What a PostgreSQL type becomes.

    `zero` is the JSON value that a function default of a required column reads as, None for a type whose defaults the
    schema does not show. `digits` of a NUMERIC as text are those after the point, which the server always prints.
    With `literals` the only defaults shown are literals. `text` is the SQL that gives a column ({}) as such text,
    `binary` a shorter road to the same values.
    """

    schema: ConnectSchema
    arrow: pa.DataType
    convert: Convert
    zero: object = None
    digits: int | None = None
    literals: bool = False
    text: str = "{}"
    binary: Binary | None = None


def _same(text: pa.Array) -> pa.Array:
    return text if text.type == pa.string() else pc.cast(text, pa.string())


def converted(found: pa.Array, kind: ValueType, where: str, *, binary: bool = False) -> pa.Array:
    """A column's text as values, or its binary form where the type has one.

    Raises DecodeError, naming the place, for text that is not UTF-8 or does not fit.
    """
    try:
        if kind.binary is not None and binary:
            return kind.binary.convert(found)
        if kind.arrow == pa.string():
            found.validate(full=True)
        return kind.convert(found)
    except (ValueError, ArithmeticError, DecodeError) as error:  # pa.ArrowInvalid is a ValueError
        raise DecodeError(
            f"a value cannot be read: {error}",
            where=where,
            remedy="report the type and value; to go on, exclude the column with column.exclude.list, or leave such "
            "rows out with event.processing.failure.handling.mode=warn",
        ) from error


def text_type(
    name: str | None = None, zero: str | None = None, parameters: tuple[tuple[str, str], ...] = ()
) -> ValueType:
    """A type that stays text, under a semantic schema name or none."""
    version = None if name is None else 1
    schema = ConnectSchema("string", name=name, version=version, parameters=parameters)
    return ValueType(schema, pa.string(), _same, zero)


def _cast(connect: str, arrow: pa.DataType, zero: object) -> ValueType:
    return ValueType(ConnectSchema(connect), arrow, lambda text: pc.cast(text, arrow), zero, binary=AS_IS)


_BOOLEAN = ValueType(
    ConnectSchema("boolean"), pa.bool_(), lambda text: pc.equal(text, literal("t")), False, binary=AS_IS
)
_BIT = ValueType(ConnectSchema("boolean"), pa.bool_(), lambda text: pc.equal(text, literal("1")), False)
_UNBOUNDED_BITS = 2**31 - 1

_PLAIN: dict[str, ValueType] = {
    "bool": _BOOLEAN,
    "int2": _cast("int16", pa.int16(), 0),
    "int4": _cast("int32", pa.int32(), 0),
    "int8": _cast("int64", pa.int64(), 0),
    "oid": replace(_cast("int64", pa.int64(), None), binary=None),
    "float4": _cast("float", pa.float32(), 0.0),
    "float8": _cast("double", pa.float64(), 0.0),
    "json": text_type("io.debezium.data.Json", "{}"),
    "jsonb": text_type("io.debezium.data.Json", "{}"),
    "xml": text_type("io.debezium.data.Xml", ""),
    "uuid": text_type("io.debezium.data.Uuid", "00000000-0000-0000-0000-000000000000"),
    "ltree": text_type("io.debezium.data.Ltree"),
    "tsvector": text_type("io.debezium.data.Tsvector"),
    **{name: text_type(zero="") for name in ("text", "varchar", "bpchar")},
    **{
        name: text_type()
        for name in (
            *("char", "name", "citext", "inet", "cidr", "macaddr", "macaddr8", "isbn"),
            "unknown",  # dropped since the log was written; what it was nobody can say
            *("int4range", "int8range", "numrange", "tsrange", "tstzrange", "daterange"),
        )
    },
    "point": ValueType(geometry.POINT, geometry.POINT_TYPE, geometry.points, None),
    # Optional even in a required column, as the reference engine has it.
    "geometry": ValueType(geometry.GEOMETRY.with_(optional=True), geometry.GEOMETRY_TYPE, geometry.geometries, None),
    "geography": ValueType(geometry.GEOGRAPHY, geometry.GEOMETRY_TYPE, geometry.geometries, None),
    "vector": ValueType(
        extensions.VECTOR, pa.list_(pa.float64()), lambda text: extensions.vectors(text, pa.float64()), None
    ),
    "halfvec": ValueType(
        extensions.HALF_VECTOR, pa.list_(pa.float32()), lambda text: extensions.vectors(text, pa.float32()), None
    ),
    "sparsevec": ValueType(extensions.SPARSE_VECTOR, extensions.SPARSE_TYPE, extensions.sparse_vectors, None),
}
# In the reference engine elements of these are not optional, nor are those of enums and of types without a mapping.
_REQUIRED_ELEMENTS = ("tsvector", "isbn", "vector", "halfvec", "sparsevec")
# As there, arrays of these have no mapping.
_NO_ARRAYS = ("money", "name", "interval", "varbit", "xml", "point", "refcursor")


def value_type(pg: PgType, modifier: int, config: Config) -> ValueType | None:
    """What a column of that type becomes; None for a type without a mapping, unless unknown types are wanted."""
    known = _scalar(pg, modifier, config) if pg.element is None else _array(pg.element, modifier, config)
    if known is None and pg.element is None and config.flag("include.unknown.datatypes"):
        return _unmapped(pg, config)
    return known


def _scalar(pg: PgType, modifier: int, config: Config) -> ValueType | None:
    if pg.labels:
        return text_type("io.debezium.data.Enum", None, (("allowed", ",".join(pg.labels)),))
    if pg.name == "name" and config.flag("compat.faults"):
        return ValueType(ConnectSchema("string"), pa.string(), lambda text: pa.nulls(len(text), pa.string()))
    if pg.name in _PLAIN:
        return _PLAIN[pg.name]
    if pg.name in ("bit", "varbit"):
        return _bits(_UNBOUNDED_BITS if modifier < 0 else modifier)
    if pg.name == "bytea":
        return _binary(config)
    if pg.name == "hstore":
        return _hstore(config.text("hstore.handling.mode"))
    if pg.name in ("numeric", "money"):
        kind = ValueType(*numbers.numeric(pg.name, modifier, config))
        is_text = pg.name == "numeric" and kind.arrow == pa.string() and modifier >= 0
        return replace(kind, digits=numbers.scale_of(modifier, config)) if is_text else kind
    if pg.name in temporal.TYPES:
        found = ValueType(*temporal.temporal(pg.name, modifier, config))
        return replace(found, binary=instants.BINARY.get(found.convert))
    return None


def _array(element: PgType, modifier: int, config: Config) -> ValueType | None:
    """An array of one dimension; elements of more are null, with a warning or an error as configured."""
    faults, unknown = config.flag("compat.faults"), config.flag("include.unknown.datatypes")
    if faults and element.name == "bit":
        kind = _bits(modifier)
        return ValueType(kind.schema, kind.arrow, lambda text: pa.nulls(len(text), kind.arrow))
    item = None if element.name in _NO_ARRAYS or (faults and element.domain) else _scalar(element, modifier, config)
    if item is None and (not unknown or (faults and element.name in _NO_ARRAYS)):
        return None
    required = faults and (item is None or bool(element.labels) or element.name in _REQUIRED_ELEMENTS)
    item = item or _unmapped(element, config)
    strict = config.text("event.converting.failure.handling.mode") == "fail"
    shortened = _SHORTENED.get(element.name) if faults else None
    arrow, delimiter = pa.list_(item.arrow), ";" if element.name == "box" else ","

    def convert(text: pa.Array) -> pa.Array:
        found = arrays.elements(text, delimiter)
        if found.nested:
            _tell_nested(found.nested, strict)
        values, null = found.lists.values, found.lists.is_null()
        if required and values.null_count:
            null = pc.or_(null, _with_null_elements(found.lists, strict))
        if shortened is not None:
            values = pc.replace_substring_regex(values, *shortened)
        mask = null if null.true_count else None
        return pa.ListArray.from_arrays(found.lists.offsets, item.convert(values), type=arrow, mask=mask)

    return ValueType(ConnectSchema("array", items=item.schema.with_(optional=not required)), arrow, convert, None)


# The reference engine cuts times in arrays to milliseconds, those with a zone to seconds.
_SHORTENED = {"time": (r"(\.\d{3})\d+", r"\1"), "timetz": (r"\.\d+", "")}


def _with_null_elements(lists: pa.ListArray, strict: bool) -> pa.Array:
    """Which arrays have a null element. Where elements are required, the reference makes such an array null."""
    if strict:
        raise DecodeError("an array has a null element, and its elements are required")
    parents = pc.list_parent_indices(lists).filter(lists.flatten().is_null())
    found = pc.is_in(pa.array(range(len(lists)), parents.type), parents)
    log.warning("%d arrays become null, as elements that are required are null", found.true_count)
    return found


def _tell_nested(count: int, strict: bool) -> None:
    if strict:
        raise DecodeError("an array of more than one dimension has no place in an event")
    log.warning("%d inner arrays of arrays with more than one dimension become null", count)


def _bits(length: int) -> ValueType:
    if length == 1:
        return _BIT
    schema = ConnectSchema("bytes", name="io.debezium.data.Bits", version=1, parameters=(("length", str(length)),))
    return ValueType(schema, pa.binary(), bits.bits, "")


def _hstore(mode: str) -> ValueType:
    if mode == "map":
        return ValueType(extensions.HSTORE_MAP, extensions.HSTORE_TYPE, extensions.hstore_maps, None)
    schema = ConnectSchema("string", name="io.debezium.data.Json", version=1, empty="{}")
    return ValueType(schema, pa.string(), extensions.hstore_json)


def binary_type(config: Config) -> ValueType:
    """Bytes, shown as `binary.handling.mode` says."""
    mode = config.text("binary.handling.mode")
    if mode == "bytes":
        return ValueType(ConnectSchema("bytes"), pa.binary(), _SHOWN[mode])
    return ValueType(ConnectSchema("string"), pa.string(), _SHOWN[mode])


def _unmapped(pg: PgType, config: Config) -> ValueType:
    """The bytes of a value's text."""
    kind = binary_type(config)
    java = config.flag("compat.faults") and pg.name in unmapped.GEOMETRIC
    text = unmapped.java_numbers if java else _same
    return replace(kind, convert=lambda value: kind.convert(text(value).cast(pa.binary())))


def _url_safe(octets: pa.Array) -> pa.Array:
    return pc.replace_substring(pc.replace_substring(base64(octets), "+", "-"), "/", "_")


_SHOWN: dict[str, Convert] = {
    "bytes": lambda octets: octets,
    "hex": unmapped.hex_text,
    "base64": base64,
    "base64-url-safe": _url_safe,
}


def _binary(config: Config) -> ValueType:
    kind = binary_type(config)
    shorter = Binary("{}", kind.convert)
    if config.text("binary.handling.mode") == "hex":
        return replace(kind, convert=lambda text: pc.utf8_slice_codeunits(text, 2), binary=shorter)
    return replace(kind, convert=lambda text: kind.convert(numbers.hex_to_bytes(text)), binary=shorter)
