"""CPU microseconds a value for each PostgreSQL type, without a server: `python benchmarks/conversions.py [ROWS]`.

Calls are those of Python functions a value: about 0 for what runs by columns, 1 and more for what goes row by row.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from tailrace.config import Config
from tailrace.connectors.postgres.config import resolve
from tailrace.connectors.postgres.types.pg_type import PgType
from tailrace.connectors.postgres.types.values import value_type
from tailrace.connectors.value_type import ValueType

ROWS, ROUNDS, PROFILED = 200_000, 3, 2_000
REQUIRED = {
    "topic.prefix": "t",
    "database.hostname": "h",
    "database.user": "u",
    "database.password": "p",
    "database.dbname": "d",
    "include.unknown.datatypes": "true",
}
MODES: dict[str, dict[str, str]] = {
    "": {},
    "string": {"decimal.handling.mode": "string"},
    "double": {"decimal.handling.mode": "double"},
    "isostring": {"time.precision.mode": "isostring"},
    "interval string": {"interval.handling.mode": "string"},
    "hex": {"binary.handling.mode": "hex"},
    "base64": {"binary.handling.mode": "base64"},
    "map": {"hstore.handling.mode": "map"},
    "faults": {"compat.faults": "true"},
}
Make = Callable[[random.Random], str]


def modifier(precision: int, scale: int) -> int:
    """The type modifier of NUMERIC(precision, scale)."""
    return ((precision << 16) | (scale & 0x7FF)) + 4


def digits(count: int) -> Make:
    return lambda r: str(r.randrange(10**count))


def decimal(whole: int, places: int) -> Make:
    return lambda r: f"{r.randrange(10**whole)}.{r.randrange(10**places):0{places}d}"


def day(r: random.Random) -> str:
    return f"{r.randint(1900, 2100)}-{r.randint(1, 12):02d}-{r.randint(1, 28):02d}"


def clock(r: random.Random) -> str:
    return f"{r.randrange(24):02d}:{r.randrange(60):02d}:{r.randrange(60):02d}.{r.randint(1, 999999):06d}"


def stamp(r: random.Random) -> str:
    return f"{day(r)} {clock(r)}"


def some(make: Make, few: int, odd: str) -> Make:
    """One in `few` values is an odd one."""
    return lambda r: make(r) if r.randrange(few) else odd


def many(make: Make, count: int = 5, quoted: bool = False) -> Make:
    mark = '"' if quoted else ""
    return lambda r: "{" + ",".join(mark + make(r) + mark for _ in range(count)) + "}"


def floats(r: random.Random) -> str:
    return repr(r.uniform(-1000, 1000))


def octets(size: int) -> Make:
    return lambda r: "\\x" + r.randbytes(size).hex()


def word(r: random.Random) -> str:
    return "".join(r.choices("abcdefghij ", k=12))


def interval(r: random.Random) -> str:
    return f"P{r.randint(1, 20)}Y{r.randint(1, 11)}M{r.randint(1, 27)}DT{r.randint(1, 23)}H{r.randint(1, 59)}M1.5S"


def bit_string(size: int) -> Make:
    return lambda r: format(r.getrandbits(size), f"0{size}b")


def hstore(r: random.Random) -> str:
    return ", ".join(f'"key{number}"=>"{word(r)}"' for number in range(4))


def geometry(r: random.Random) -> str:
    return "0101000020E6100000" + r.randbytes(16).hex().upper()


def vector(r: random.Random) -> str:
    return "[" + ",".join(f"{r.random():.6f}" for _ in range(16)) + "]"


def sparse(r: random.Random) -> str:
    return "{" + ",".join(f"{key}:{r.random():.6f}" for key in sorted(r.sample(range(1, 1000), 6))) + "}/1000"


# Type, modifier, mode, values. A type that begins with _ is an array.
CASES: list[tuple[str, int, str, Make]] = [
    ("bool", -1, "", lambda r: r.choice("tf")),
    ("int4", -1, "", digits(9)),
    ("int8", -1, "", digits(18)),
    ("float8", -1, "", floats),
    ("numeric", modifier(12, 2), "", decimal(9, 2)),
    ("numeric", modifier(60, 10), "", decimal(45, 10)),
    ("numeric", modifier(200, 5), "", decimal(20, 5)),
    ("numeric", -1, "", decimal(9, 4)),
    ("numeric", -1, "", decimal(20, 4)),
    ("numeric", -1, "string", decimal(9, 4)),
    ("numeric", -1, "double", decimal(9, 4)),
    ("money", -1, "", lambda r: f"${r.randrange(1000)},{r.randrange(1000):03d}.{r.randrange(100):02d}"),
    ("text", -1, "", word),
    ("jsonb", -1, "", lambda r: f'{{"a": "{word(r)}"}}'),
    ("uuid", -1, "", lambda r: str(r.getrandbits(128))),
    ("bytea", -1, "", octets(32)),
    ("bytea", -1, "hex", octets(32)),
    ("bytea", -1, "base64", octets(32)),
    ("date", -1, "", day),
    ("date", -1, "", some(day, 100, "infinity")),
    ("date", -1, "isostring", day),
    ("time", -1, "", clock),
    ("time", 3, "", clock),
    ("timetz", -1, "", lambda r: clock(r) + "+02"),
    ("timestamp", -1, "", stamp),
    ("timestamp", -1, "", some(stamp, 100, "0044-03-15 12:00:00 BC")),
    ("timestamp", 3, "", stamp),
    ("timestamp", -1, "isostring", stamp),
    ("timestamptz", -1, "", lambda r: stamp(r) + "+00"),
    ("timestamptz", -1, "", some(lambda r: stamp(r) + "+00", 100, "infinity")),
    ("interval", -1, "", interval),
    ("interval", -1, "interval string", interval),
    ("bit", 1, "", lambda r: r.choice("01")),
    ("bit", 64, "", bit_string(64)),
    ("point", -1, "", lambda r: f"({floats(r)},{floats(r)})"),
    ("geometry", -1, "", geometry),
    ("hstore", -1, "", hstore),
    ("hstore", -1, "map", hstore),
    ("vector", -1, "", vector),
    ("sparsevec", -1, "", sparse),
    ("line", -1, "", lambda r: f"{{{floats(r)},{floats(r)},{floats(r)}}}"),
    ("line", -1, "faults", lambda r: f"{{{floats(r)},{floats(r)},{floats(r)}}}"),
    ("pg_lsn", -1, "", lambda r: f"{r.getrandbits(32):X}/{r.getrandbits(32):X}"),
    ("pg_lsn", -1, "hex", lambda r: f"{r.getrandbits(32):X}/{r.getrandbits(32):X}"),
    ("_int4", -1, "", many(digits(6))),
    ("_text", -1, "", many(word, quoted=True)),
    ("_numeric", modifier(12, 2), "", many(decimal(9, 2))),
    ("_timestamp", -1, "", many(stamp, quoted=True)),
]


def measured(kind: ValueType, text: pa.Array) -> float:
    """Seconds of CPU of the fastest round."""
    times = []
    for _ in range(ROUNDS):
        begin = time.process_time()
        kind.convert(text)
        times.append(time.process_time() - begin)
    return min(times)


def calls(kind: ValueType, text: pa.Array) -> float:
    """Calls of functions a value, Python's and C's."""
    count = 0

    def profile(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(profile)
    try:
        kind.convert(text)
    finally:
        sys.setprofile(None)
    return count / len(text)


def main() -> None:
    """Print the table."""
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else ROWS
    print(f"{'type':<16} {'mode':<16} {'example':<34} {'us/value':>9} {'calls/value':>12}")
    for name, typmod, mode, make in CASES:
        draw = random.Random(1)
        config: Config = resolve({**REQUIRED, **MODES[mode]})
        element = PgType(name.lstrip("_"), name)
        kind = value_type(PgType(name, name, element=element) if name.startswith("_") else element, typmod, config)
        assert kind is not None
        text = pa.array([make(draw) for _ in range(rows)], pa.string())
        per_value = measured(kind, text) / rows * 1e6
        shown = f"{name}({typmod})" if 0 <= typmod < 100 else name
        example = text[0].as_py()[:34]
        print(f"{shown:<16} {mode:<16} {example:<34} {per_value:9.3f} {calls(kind, text.slice(0, PROFILED)):12.2f}")


if __name__ == "__main__":
    main()
