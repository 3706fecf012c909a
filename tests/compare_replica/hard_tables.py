"""Tables of PostgreSQL that are hard to follow, with random statements that make use of what is hard about them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

Statements = list[str]


@dataclass(frozen=True)
class HardTable:
    """Statements that create tables, and what makes the statements of a change; each change may fail as a whole.

    `ending` are statements before a check.
    """

    setup: Sequence[str]
    change: Callable[[Random], Statements]
    ending: Sequence[str] = ()


def hard_tables(random: Random) -> list[HardTable]:
    """Some of them, each once."""
    return [make(random) for make in dict.fromkeys(random.choices(_MAKERS, k=random.choice((1, 1, 2, 3))))]


def _text(random: Random) -> str:
    return f"'{random.choice('abcdefgh')}{random.randrange(100)}'"


def _together(random: Random, statements: Statements) -> Statements:
    """The statements, mostly in one transaction."""
    if random.random() < 0.3:
        return statements
    return ["BEGIN", *statements, random.choice(("COMMIT", "COMMIT", "COMMIT", "ROLLBACK"))]


def _deferrable(random: Random) -> HardTable:
    """Keys that are unique at the commit only."""
    key = random.choice(("PRIMARY KEY DEFERRABLE INITIALLY DEFERRED", "NOT NULL UNIQUE DEFERRABLE INITIALLY IMMEDIATE"))
    setup = [
        f"CREATE TABLE swaps (id int {key}, v text)",
        "ALTER TABLE swaps REPLICA IDENTITY FULL",
        "INSERT INTO swaps SELECT i, 'v' || i FROM generate_series(1, 6) i",
    ]

    def change(random: Random) -> Statements:
        one, two = random.randrange(1, 9), random.randrange(1, 9)
        swap = f"UPDATE swaps SET id = {one + two} - id WHERE id IN ({one}, {two})"
        shift = f"UPDATE swaps SET id = id + {random.choice((1, -1))} WHERE id >= {one}"
        first = f"DELETE FROM swaps WHERE ctid = (SELECT min(ctid) FROM swaps WHERE id = {one})"
        insert = f"INSERT INTO swaps VALUES ({one}, {_text(random)})"
        touch = f"UPDATE swaps SET v = {_text(random)} WHERE id = {two}"
        options = ([swap], [shift], [insert, first], [first, insert], [swap, touch, shift], [insert])
        return _together(random, random.choice(options))

    return HardTable(setup, change)


def _cascade(random: Random) -> HardTable:
    """Rows that change by foreign keys."""
    action = random.choice(("CASCADE", "SET NULL", "SET DEFAULT"))
    setup = [
        "CREATE TABLE parents (id int PRIMARY KEY, v text)",
        "CREATE TABLE children (id int PRIMARY KEY, parent int REFERENCES parents ON DELETE CASCADE ON UPDATE CASCADE)",
        f"CREATE TABLE grandchildren (id serial PRIMARY KEY, child int REFERENCES children ON DELETE {action})",
        "INSERT INTO parents SELECT i, 'p' FROM generate_series(1, 5) i",
        "INSERT INTO children SELECT i, i FROM generate_series(1, 5) i",
        "INSERT INTO grandchildren (child) SELECT i FROM generate_series(1, 5) i",
    ]

    def change(random: Random) -> Statements:
        one, two = random.randrange(1, 12), random.randrange(1, 12)
        options = (
            f"DELETE FROM parents WHERE id = {one}",
            f"UPDATE parents SET id = {two} WHERE id = {one}",
            f"INSERT INTO parents VALUES ({one}, {_text(random)})",
            f"INSERT INTO children VALUES ({one}, {two})",
            f"INSERT INTO grandchildren (child) VALUES ({one})",
            f"DELETE FROM children WHERE id = {one}",
            random.choice(("TRUNCATE parents RESTART IDENTITY CASCADE", "TRUNCATE grandchildren")),
        )
        chosen = random.choices(options, (3, 3, 4, 4, 3, 2, 1), k=random.randrange(1, 5))
        return _together(random, chosen)

    return HardTable(setup, change)


_EQUALS = (
    (
        "numeric",
        ("1.0", "1.00", "'NaN'", "'Infinity'", "'-Infinity'", "0", "123456789012345678901234567890123456789.5"),
    ),
    ("numeric(12,3)", ("1.0", "1", "'NaN'", "0", "-0.5", "999999999.999")),
    ("float8", ("0", "'-0'", "'NaN'", "'Infinity'", "'-Infinity'", "0.1", "1e-310", "1")),
    ("real", ("0", "'-0'", "'NaN'", "'Infinity'", "0.1", "16777216")),
    ("interval", ("'1 mon'", "'30 days'", "'720:00:00'", "'1 day'", "'24:00:00'", "'0'")),
    ("timetz", ("'10:00+00'", "'12:00+02'", "'09:00-01'", "'23:00+00'", "'00:00+01'")),
    ("jsonb", ("'1.0'", "'1.00'", "'{\"a\": 1}'", "'{\"a\": 1.0}'", "'null'", "'\"x\"'")),
    ("bpchar", ("'a'", "'a  '", "'b'", "''", "' '")),
    ("char(4)", ("'a'", "'a '", "'b'", "''")),
    ("inet", ("'10.0.0.1'", "'10.0.0.1/32'", "'10.0.0.1/24'", "'::1'")),
    ("numeric[]", ("'{1.0}'", "'{1.00}'", "'{NaN}'", "'{}'", "'{NULL}'")),
    ("numrange", ("'[1.0,2)'", "'[1.00,2.0)'", "'empty'", "'(,)'")),
    ("bytea", (r"'\x'", r"'\x00'", r"'\x0000'", r"'\xff'")),
    ("text", ("''", "' '", "'a'", "'A'", "E'e\\u0301'", "'é'", "E'a\\tb'")),
)


def _equal_keys(random: Random) -> HardTable:
    """Keys whose values may be equal and not identical."""
    type_, values = random.choice(_EQUALS)
    more = random.random() < 0.3
    key = "id, k" if more else "id"
    setup = [
        f"CREATE TABLE equals (id {type_}, k int NOT NULL DEFAULT 1, v text, PRIMARY KEY ({key}))",
        *(f"INSERT INTO equals (id, v) VALUES ({value}, 'first') ON CONFLICT DO NOTHING" for value in values[::2]),
    ]
    if random.random() < 0.3:
        setup.append("ALTER TABLE equals REPLICA IDENTITY FULL")

    def change(random: Random) -> Statements:
        one, two = random.choice(values), random.choice(values)
        options = (
            [f"INSERT INTO equals (id, v) VALUES ({one}, {_text(random)}) ON CONFLICT DO NOTHING"],
            [f"UPDATE equals SET id = {two} WHERE id = {one}"],
            [f"UPDATE equals SET v = {_text(random)} WHERE id = {one}"],
            [f"DELETE FROM equals WHERE id = {one}"],
            [f"DELETE FROM equals WHERE id = {one}", f"INSERT INTO equals (id, v) VALUES ({two}, {_text(random)})"],
            ["UPDATE equals SET v = v || '.'"],
        )
        chosen = [random.choice(options) for _ in range(random.randrange(1, 4))]
        return _together(random, [statement for option in chosen for statement in option])

    return HardTable(setup, change)


def _partitions(random: Random) -> HardTable:
    """A partitioned table whose partitions come and go; `loose` is attached and detached."""
    low = ((0, 10), (10, 20), (20, 30))
    setup = [
        "CREATE TABLE parts (id int, d int, v text, PRIMARY KEY (id, d)) PARTITION BY RANGE (d)",
        *(f"CREATE TABLE part_{a} PARTITION OF parts FOR VALUES FROM ({a}) TO ({b})" for a, b in low),
        "CREATE TABLE loose (id int, d int, v text, PRIMARY KEY (id, d))",
        "INSERT INTO parts SELECT i, i, 'v' FROM generate_series(0, 29, 4) i",
        "INSERT INTO loose SELECT i, i, 'loose' FROM generate_series(30, 39, 3) i",
    ]

    def change(random: Random) -> Statements:
        place, to, row = (random.randrange(0, 40) for _ in range(3))
        part = f"part_{random.choice((0, 10, 20))}"
        bounds = {"part_0": "(0) TO (10)", "part_10": "(10) TO (20)", "part_20": "(20) TO (30)"}[part]
        rows = (
            f"INSERT INTO parts VALUES ({row}, {place}, {_text(random)}) ON CONFLICT DO NOTHING",
            f"UPDATE parts SET d = {to} WHERE d = {place}",
            f"UPDATE parts SET v = {_text(random)} WHERE d > {place}",
            f"DELETE FROM parts WHERE d = {place}",
            f"INSERT INTO loose VALUES ({row}, {random.randrange(30, 40)}, {_text(random)}) ON CONFLICT DO NOTHING",
        )
        ddl = (
            "ALTER TABLE parts ATTACH PARTITION loose FOR VALUES FROM (30) TO (40)",
            "ALTER TABLE parts DETACH PARTITION loose",
            f"ALTER TABLE parts DETACH PARTITION {part}",
            f"ALTER TABLE parts ATTACH PARTITION {part} FOR VALUES FROM {bounds}",
            f"DROP TABLE {part}",
            f"CREATE TABLE {part} PARTITION OF parts FOR VALUES FROM {bounds}",
            f"TRUNCATE {part}",
            "TRUNCATE parts",
        )
        if random.random() < 0.25:
            return [random.choice(ddl)]
        return _together(random, [random.choice(rows) for _ in range(random.randrange(1, 4))])

    return HardTable(setup, change)


def _heirs(random: Random) -> HardTable:
    """A parent and a child by INHERITS."""
    setup = [
        "CREATE TABLE par (id int PRIMARY KEY, v text)",
        "CREATE TABLE kid (PRIMARY KEY (id), own int) INHERITS (par)",
        "INSERT INTO par VALUES (1, 'p'), (2, 'p')",
        "INSERT INTO kid VALUES (11, 'k', 1), (12, 'k', 2)",
    ]

    def change(random: Random) -> Statements:
        id_ = random.choice((1, 2, 3, 11, 12, 13))
        options = (
            f"UPDATE par SET v = {_text(random)} WHERE id = {id_}",
            f"DELETE FROM {random.choice(('par', 'ONLY par', 'kid'))} WHERE id = {id_}",
            f"INSERT INTO par VALUES ({id_}, {_text(random)}) ON CONFLICT DO NOTHING",
            f"INSERT INTO kid VALUES ({id_}, {_text(random)}, 3) ON CONFLICT DO NOTHING",
            random.choice(("ALTER TABLE par ADD COLUMN IF NOT EXISTS more int DEFAULT 4", "TRUNCATE ONLY par")),
            random.choice(("ALTER TABLE kid NO INHERIT par", "ALTER TABLE kid INHERIT par", "TRUNCATE kid")),
        )
        return _together(random, random.choices(options, (4, 3, 4, 4, 1, 1), k=random.randrange(1, 4)))

    return HardTable(setup, change)


def _bag(random: Random) -> HardTable:
    """Rows without a key, some of them equal."""
    setup = [
        "CREATE TABLE bag (a int, b text, c numeric)",
        "ALTER TABLE bag REPLICA IDENTITY FULL",
        "INSERT INTO bag VALUES (1, 'x', 1.0), (1, 'x', 1.0), (NULL, NULL, NULL), (NULL, NULL, NULL), (2, 'y', 'NaN')",
    ]

    def change(random: Random) -> Statements:
        a, b = random.choice(("1", "2", "NULL")), random.choice(("'x'", "'y'", "NULL"))
        one = f"(SELECT ctid FROM bag WHERE a IS NOT DISTINCT FROM {a} LIMIT 1)"
        options = (
            f"INSERT INTO bag VALUES ({a}, {b}, {random.choice(('1.0', '1.00', 'NULL'))})",
            f"DELETE FROM bag WHERE ctid = {one}",
            f"UPDATE bag SET b = {b} WHERE ctid = {one}",
            f"UPDATE bag SET c = {random.choice(('1.00', '2', 'NULL'))} WHERE a = 1",
            f"DELETE FROM bag WHERE b = {b}",
            "UPDATE bag SET a = a",
        )
        return _together(random, random.choices(options, k=random.randrange(1, 5)))

    return HardTable(setup, change)


def _labels(random: Random) -> HardTable:
    """An enum whose labels are added and renamed."""
    setup = [
        "CREATE TYPE feeling AS ENUM ('sad', 'ok', 'glad')",
        "CREATE TABLE felt (id int PRIMARY KEY, one feeling, many feeling[], v text)",
        "INSERT INTO felt VALUES (1, 'sad', '{sad,ok}', 'a'), (2, 'ok', '{}', 'b'), (3, NULL, NULL, 'c')",
    ]

    def change(random: Random) -> Statements:
        label = random.choice(("sad", "ok", "glad", "blue", "new"))
        options = (
            f"INSERT INTO felt VALUES ({random.randrange(1, 20)}, '{label}', '{{{label}}}', {_text(random)})",
            f"UPDATE felt SET many = '{{{label}}}' WHERE id = {random.randrange(1, 8)}",
            f"UPDATE felt SET v = {_text(random)} WHERE id = {random.randrange(1, 8)}",
            "ALTER TYPE feeling RENAME VALUE 'sad' TO 'blue'",
            "ALTER TYPE feeling ADD VALUE IF NOT EXISTS 'new' BEFORE 'ok'",
        )
        return [random.choices(options, (6, 3, 3, 1, 1))[0]]

    return HardTable(setup, change)


def _unlogged(random: Random) -> HardTable:
    """A table that is logged at times."""
    setup = ["CREATE TABLE at_times (id int PRIMARY KEY, v text)", "INSERT INTO at_times VALUES (1, 'a'), (2, 'b')"]

    def change(random: Random) -> Statements:
        id_ = random.randrange(1, 9)
        options = (
            f"INSERT INTO at_times VALUES ({id_}, {_text(random)}) ON CONFLICT DO NOTHING",
            f"UPDATE at_times SET v = {_text(random)} WHERE id = {id_}",
            f"DELETE FROM at_times WHERE id = {id_}",
            f"ALTER TABLE at_times SET {random.choice(('LOGGED', 'LOGGED', 'UNLOGGED'))}",
        )
        return random.choices(options, (4, 3, 2, 2), k=random.randrange(1, 5))

    # While it is unlogged it is incomplete, and nothing ends that.
    return HardTable(setup, change, ("ALTER TABLE at_times SET LOGGED",))


def _swapped(random: Random) -> HardTable:
    """Tables that are loaded beside, dropped, renamed and moved."""
    setup = ["CREATE TABLE orders (id int PRIMARY KEY, v text)", "INSERT INTO orders VALUES (1, 'old'), (2, 'old')"]

    def change(random: Random) -> Statements:
        id_, key = random.randrange(1, 9), random.choice(("id int", "id int", "id text", "id bigint"))
        beside = [
            f"CREATE TABLE orders_new ({key} PRIMARY KEY, v text)",
            f"INSERT INTO orders_new VALUES ('{id_}', 'new')",
        ]
        options: tuple[Statements, ...] = (
            [f"INSERT INTO orders VALUES ('{id_}', {_text(random)}) ON CONFLICT DO NOTHING"],
            [f"UPDATE orders SET v = {_text(random)} WHERE id::text = '{id_}'"],
            [f"DELETE FROM orders WHERE id::text = '{id_}'"],
            [*beside, "BEGIN", "DROP TABLE orders", "ALTER TABLE orders_new RENAME TO orders", "COMMIT"],
            [
                *beside,
                *("BEGIN", "ALTER TABLE orders RENAME TO orders_old", "ALTER TABLE orders_new RENAME TO orders"),
                *("COMMIT", "DROP TABLE IF EXISTS orders_old"),
            ],
            ["DROP TABLE orders", f"CREATE TABLE orders ({key} PRIMARY KEY, v text, w int)"],
            ["CREATE SCHEMA IF NOT EXISTS archive", "ALTER TABLE orders SET SCHEMA archive", beside[0]],
            ["ALTER TABLE orders_new RENAME TO orders"],
        )
        return random.choices(options, (5, 4, 3, 1, 1, 1, 0.5, 1))[0]

    return HardTable(setup, change)


def _generated(random: Random) -> HardTable:
    """Columns that the server computes, and columns whose names differ by case."""
    names = ('"Name" text, name text', "plain text")[random.random() < 0.8]
    setup = [
        f"CREATE TABLE made (id int PRIMARY KEY, a int, b int GENERATED ALWAYS AS (a * 2) STORED, {names})",
        "INSERT INTO made (id, a) VALUES (1, 1), (2, 2), (3, NULL)",
    ]
    if random.random() < 0.3:
        setup.append("ALTER TABLE made REPLICA IDENTITY FULL")

    def change(random: Random) -> Statements:
        id_ = random.randrange(1, 9)
        options = (
            f"INSERT INTO made (id, a) VALUES ({id_}, {random.randrange(9)}) ON CONFLICT DO NOTHING",
            f"UPDATE made SET a = {random.choice(('NULL', '7', 'a + 1'))} WHERE id = {id_}",
            f"DELETE FROM made WHERE id = {id_}",
            f"UPDATE made SET id = {random.randrange(10, 20)} WHERE id = {id_}",
            "ALTER TABLE made ALTER COLUMN b DROP EXPRESSION IF EXISTS",
        )
        return [random.choices(options, (4, 4, 2, 2, 0.3))[0]]

    return HardTable(setup, change)


_MAKERS = (
    *(_deferrable, _cascade, _equal_keys, _equal_keys, _partitions, _partitions, _heirs, _bag, _labels, _unlogged),
    *(_swapped, _swapped, _generated),
)
