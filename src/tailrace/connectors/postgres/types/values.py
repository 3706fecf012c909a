"""PostgreSQL types: from the text that the server prints to Connect values, a column at a time.

The log sends text by pgoutput and a chunk of an incremental snapshot by COPY, in the same session settings (see
connect.py), so each type has one conversion. A whole table is read by ADBC: as such text, too, except for types whose
binary form is nearer to their values.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from tailrace.config import Config
from tailrace.config.faults import Fault, Faults
from tailrace.config.options.events import BINARY_HANDLING_MODE
from tailrace.config.options.spark import COMPAT_FAULTS
from tailrace.connectors.lost_values import became_null
from tailrace.connectors.postgres.log.protocol import arrays
from tailrace.connectors.postgres.options import (
    COMPATIBILITY,
    HSTORE_HANDLING_MODE,
    INCLUDE_UNKNOWN_DATATYPES,
    NEWER,
)
from tailrace.connectors.postgres.types import (
    binary_temporal,
    bits,
    extensions,
    nested_arrays,
    numbers,
    planar,
    temporal,
    unmapped,
)
from tailrace.connectors.postgres.types.driver_times import as_read_from_arrays, date_as_read
from tailrace.connectors.postgres.types.geometry import geometries, points
from tailrace.connectors.postgres.types.pg_type import PgType
from tailrace.connectors.postgres.types.source_type import size
from tailrace.connectors.postgres.types.structured import structured_type
from tailrace.connectors.types import geometry
from tailrace.connectors.types.binary import binary_type
from tailrace.connectors.types.temporal import STRUCTURED, precision_mode
from tailrace.connectors.value_type import (
    AS_IS,
    Binary,
    ValueType,
    as_string,
    cast_type,
    is_native,
    is_strict,
    keeps_all,
    text_type,
)
from tailrace.errors import DecodeError
from tailrace.model.arrow import join, literal
from tailrace.model.schema import ConnectSchema

_BOOLEAN = ValueType(
    ConnectSchema("boolean"), pa.bool_(), lambda text: pc.equal(text, literal("t")), False, binary=AS_IS
)
_BIT = ValueType(ConnectSchema("boolean"), pa.bool_(), lambda text: pc.equal(text, literal("1")), False)
_EMPTY_IS_NULL = replace(_BIT, convert=bits.true_or_null)
_UNBOUNDED_BITS = 2**31 - 1

_PLAIN: dict[str, ValueType] = {
    "bool": _BOOLEAN,
    "int2": cast_type("int16", pa.int16(), 0, AS_IS),
    "int4": cast_type("int32", pa.int32(), 0, AS_IS),
    "int8": cast_type("int64", pa.int64(), 0, AS_IS),
    "oid": cast_type("int64", pa.int64(), None),
    "float4": cast_type("float", pa.float32(), 0.0, AS_IS),
    "float8": cast_type("double", pa.float64(), 0.0, AS_IS),
    "json": text_type("io.debezium.data.Json", "{}"),
    "jsonb": replace(text_type("io.debezium.data.Json", "{}"), sql="jsonb"),
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
    "point": ValueType(geometry.POINT, geometry.POINT_TYPE, points),
    # Optional even in a required column, as the reference engine has it.
    "geometry": ValueType(geometry.GEOMETRY.with_(optional=True), geometry.GEOMETRY_TYPE, geometries),
    "geography": ValueType(geometry.GEOGRAPHY, geometry.GEOMETRY_TYPE, geometries),
    "vector": ValueType(
        extensions.VECTOR, pa.list_(pa.float64()), lambda text: extensions.vectors(text, pa.float64()), None
    ),
    "halfvec": ValueType(
        extensions.HALF_VECTOR, pa.list_(pa.float32()), lambda text: extensions.vectors(text, pa.float32()), None
    ),
    "sparsevec": ValueType(extensions.SPARSE_VECTOR, extensions.SPARSE_TYPE, extensions.sparse_vectors, None),
}
# With compat.version=3.7; in the earlier release those of planar.py have no mapping.
_NEWER = {**planar.TYPES, "geometry": planar.with_extensions(geometries)}
# The catalog's arrays from 0: types of their own, which the reference engine takes for arrays by their category.
_VECTORS = {"oidvector": ("int64", pa.int64()), "int2vector": ("int16", pa.int16())}
# In the reference engine elements of these are not optional, nor are those of enums and of types without a mapping.
_REQUIRED_ELEMENTS = ("tsvector", "isbn", "vector", "halfvec", "sparsevec", "oidvector", "int2vector")
# Two keys may differ in what these lose: the zone of one instant, the number of bits.
LOSSY_KEYS = ("timetz", "varbit")
# Elements of NUMERIC[] that the driver of the reference engine cannot read as decimals.
_NO_NUMBERS = ("NaN", "Infinity", "-Infinity")
# As there, arrays of these have no mapping.
_NO_ARRAYS = ("money", "name", "interval", "varbit", "xml", "point", "refcursor")


def value_type(pg: PgType, modifier: int, config: Config, *, in_log: bool = True) -> ValueType | None:
    """What a column of that type becomes; None for a type without a mapping, unless unknown types are wanted.

    The reference engine reads a few types from the log in another way than from tables (`in_log` false).
    """
    if pg.element is not None:
        return _array(pg.element, modifier, config)
    type_ = _scalar(pg, modifier, config, in_log=in_log)
    if type_ is None and config[INCLUDE_UNKNOWN_DATATYPES]:
        return _unmapped(pg, config)
    return type_


def _scalar(pg: PgType, modifier: int, config: Config, *, in_log: bool) -> ValueType | None:
    if pg.labels:
        return text_type("io.debezium.data.Enum", None, (("allowed", ",".join(pg.labels)),))
    faults = config[COMPAT_FAULTS]
    is_driver_date = pg.name == "date" and Fault.DRIVER_DATES in faults and not in_log
    is_null = Fault.NULL_NAMES in faults and in_log and not config[INCLUDE_UNKNOWN_DATATYPES]
    if pg.name == "name" and is_null:
        return ValueType(ConnectSchema("string"), pa.string(), lambda text: pa.nulls(len(text), pa.string()))
    if config[COMPATIBILITY] == NEWER and pg.name in _NEWER and not is_native(config):
        return _NEWER[pg.name]
    if pg.name in _PLAIN:
        return _PLAIN[pg.name]
    if pg.name in _VECTORS:
        return _vector(pg.name, is_read=Fault.EMPTY_VECTORS not in faults)
    if pg.name in ("bit", "varbit"):
        kind = _bits(_UNBOUNDED_BITS if modifier < 0 else modifier, faults)
        return replace(kind, loses="its length") if pg.name == "varbit" else kind
    if pg.name == "bytea":
        return _binary(config)
    if pg.name == "hstore":
        return _hstore(config[HSTORE_HANDLING_MODE])
    if pg.name == "numeric":
        return numbers.numeric(modifier, config)
    if pg.name == "money":
        return numbers.money(config)
    if pg.name in temporal.TYPES and precision_mode(config) == STRUCTURED:
        kind = structured_type(pg.name, size(pg.name, modifier)[1], is_strict(config))
        return replace(kind, convert=lambda text: kind.convert(date_as_read(text))) if is_driver_date else kind
    if is_driver_date:
        return temporal.driver_date(config)
    if pg.name in temporal.TYPES:
        kind = temporal.temporal_type(pg.name, modifier, config)
        return replace(kind, binary=binary_temporal.BINARY.get(kind.convert))
    return None


# Types whose unchanged large arrays have a placeholder in the reference; arrays of others are null.
_PLACEHOLDERS = frozenset({"text", "varchar", "bpchar", "json", "jsonb", "bytea", "int4", "int8", "date", "uuid"})


_REQUIRED = "a null element (elements are required)"


def _without_values(kind: ValueType) -> ValueType:
    return ValueType(kind.schema, kind.arrow, lambda text: pa.nulls(len(text), kind.arrow))


def _mapped_element(element: PgType, modifier: int, config: Config) -> ValueType | None:
    """What an element of an array is sent as; None for a type that arrays are not sent of."""
    if element.name in _NO_ARRAYS or (Fault.UNMAPPED_DOMAIN_ARRAYS in config[COMPAT_FAULTS] and element.domain):
        return None
    return _scalar(element, modifier, config, in_log=False)


def _array(element: PgType, modifier: int, config: Config) -> ValueType | None:
    """An array of one dimension; elements of more are null, with a warning or an error as configured."""
    faults, unknown = config[COMPAT_FAULTS], config[INCLUDE_UNKNOWN_DATATYPES]
    delimiter = ";" if element.name == "box" else ","
    if Fault.NULL_BIT_ARRAYS in faults and element.name == "bit" and not element.domain:
        return _without_values(_bits(modifier, faults))
    mapped = _mapped_element(element, modifier, config)
    if mapped is None and (not unknown or (element.name in _NO_ARRAYS and Fault.UNKNOWN_WITHOUT_ARRAYS in faults)):
        return None
    required = Fault.REQUIRED_ELEMENTS in faults and (
        mapped is None or bool(element.labels) or element.name in _REQUIRED_ELEMENTS
    )
    item = mapped or _unmapped(element, config)
    if keeps_all(config):
        return nested_arrays.array_type(item, delimiter)
    strict, arrow = is_strict(config), pa.list_(item.arrow)
    # Debezium 3.7 reads the text of these.
    keeps_times = element.name == "timetz" and precision_mode(config) == STRUCTURED

    def convert(text: pa.Array) -> pa.Array:
        parsed = arrays.elements(text, delimiter)
        if parsed.nested:
            _tell_nested(parsed.nested, strict)
        values, null = parsed.lists.values, parsed.lists.is_null()
        if required and values.null_count:
            null = pc.or_(null, _having(parsed.lists, values.is_null(), _REQUIRED, strict))
        if element.name == "numeric" and Fault.NUMBERS_WITHOUT_NAN in faults:
            null = pc.or_(null, _having(parsed.lists, _without_number(values), "NaN or infinity", strict))
        if Fault.DRIVER_TIMES in faults and not keeps_times:
            values = as_read_from_arrays(element.name, values)
        mask = null if null.true_count else None
        return pa.ListArray.from_arrays(parsed.lists.offsets, item.convert(values), type=arrow, mask=mask)

    return ValueType(
        ConnectSchema("array", items=item.schema.with_(optional=not required)),
        arrow,
        convert,
        placeholder=_has_placeholder(element, item) or Fault.ARRAYS_WITHOUT_PLACEHOLDER not in faults,
        sql=item.sql and f"{item.sql}[]",
        form=item.form,
    )


def _has_placeholder(element: PgType, item: ValueType) -> bool:
    is_text = element.name == "bytea" and item.schema.type == "string"
    return element.name in _PLACEHOLDERS and not element.domain and not is_text


def _without_number(values: pa.Array) -> pa.Array:
    return pc.is_in(values, pa.array(_NO_NUMBERS, pa.string()))


def _having(lists: pa.ListArray, is_found: pa.Array, what: str, strict: bool) -> pa.Array:
    """Which arrays have such an element: the reference engine makes these null as a whole."""
    parents = pc.list_parent_indices(lists).filter(pc.fill_null(is_found, False))
    with_such = pc.is_in(pa.array(range(len(lists)), parents.type), parents)
    if with_such.true_count and strict:
        raise DecodeError(f"an array has {what}")
    if with_such.true_count:
        became_null(with_such.true_count, f"arrays with {what}")
    return with_such


def _tell_nested(count: int, strict: bool) -> None:
    if strict:
        raise DecodeError("an array of more than one dimension has no place in an event")
    became_null(count, "inner arrays of arrays with more than one dimension")


def _bits(length: int, faults: Faults) -> ValueType:
    if length == 1:
        return _EMPTY_IS_NULL if Fault.NULL_EMPTY_BITS in faults else _BIT
    schema = ConnectSchema("bytes", name="io.debezium.data.Bits", version=1, parameters=(("length", str(length)),))
    return ValueType(schema, pa.binary(), bits.bits, "")


def _vector(name: str, *, is_read: bool) -> ValueType:
    """Numbers between blanks, `1 2`; unless `is_read` none: the reference's driver reads no such array."""
    item, arrow = _VECTORS[name]

    def convert(text: pa.Array) -> pa.Array:
        shown = pc.replace_substring(text, " ", ",") if is_read else pc.if_else(pc.equal(text, literal("")), None, "")
        return arrays.elements(join("{", shown, "}")).lists.cast(pa.list_(arrow))

    return ValueType(ConnectSchema("array", items=ConnectSchema(item)), pa.list_(arrow), convert)


def _hstore(mode: str) -> ValueType:
    if mode == "map":
        return ValueType(extensions.HSTORE_MAP, extensions.HSTORE_TYPE, extensions.hstore_maps, None, form=mode)
    schema = ConnectSchema("string", name="io.debezium.data.Json", version=1, empty="{}")
    return ValueType(schema, pa.string(), extensions.hstore_json)


def _unmapped(pg: PgType, config: Config) -> ValueType:
    """The bytes of a value's text."""
    kind = _binary_type(config)
    java = Fault.GEOMETRIES_OF_DOUBLES in config[COMPAT_FAULTS] and pg.name in unmapped.GEOMETRIC
    text = unmapped.java_numbers if java else as_string
    return replace(kind, convert=lambda value: kind.convert(text(value).cast(pa.binary())))


def _binary_type(config: Config) -> ValueType:
    """Bytes; the reference engine has no placeholder for them in base64."""
    is_base64 = config[BINARY_HANDLING_MODE].startswith("base64")
    return replace(
        binary_type(config), placeholder=not (is_base64 and Fault.BASE64_WITHOUT_PLACEHOLDER in config[COMPAT_FAULTS])
    )


def _binary(config: Config) -> ValueType:
    kind = _binary_type(config)
    shorter = Binary("{}", kind.convert)
    if config[BINARY_HANDLING_MODE] == "hex":
        return replace(kind, convert=lambda text: pc.utf8_slice_codeunits(text, 2), binary=shorter)
    return replace(kind, convert=lambda text: kind.convert(numbers.hex_to_bytes(text)), binary=shorter)
