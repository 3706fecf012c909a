"""Random connector properties."""

from __future__ import annotations

import re
from random import Random

from tests.compare.postgres.tables import Column, Table
from tests.compare.postgres.transforms import random_transforms

_ONE_OF: dict[str, tuple[float, tuple[str, ...]]] = {
    "decimal.handling.mode": (0.6, ("double", "string")),
    "time.precision.mode": (
        0.6,
        ("connect", "isostring", "microseconds", "nanoseconds", "adaptive_time_microseconds"),
    ),
    "binary.handling.mode": (0.5, ("base64", "base64-url-safe", "hex")),
    "interval.handling.mode": (0.4, ("string",)),
    "money.fraction.digits": (0.2, ("0", "1", "4")),
    "tombstones.on.delete": (0.3, ("false",)),
    "schema.name.adjustment.mode": (0.3, ("avro", "avro_unicode")),
    "field.name.adjustment.mode": (0.3, ("avro", "avro_unicode")),
    "provide.transaction.metadata": (0.3, ("true",)),
    "skipped.operations": (0.4, ("none", "none", "d", "u,d", "c")),
    "snapshot.mode": (0.2, ("no_data", "always", "when_needed")),
    "unavailable.value.placeholder": (0.2, ("gone", "hex:00ff")),
    "include.unknown.datatypes": (0.3, ("true",)),
    "include.schema.comments": (0.1, ("true",)),
    "publish.via.partition.root": (0.3, ("true",)),
    "skip.messages.without.change": (0.15, ("true",)),
    "extended.headers.enabled": (0.2, ("false",)),
    "publication.autocreate.mode": (0.2, ("filtered",)),
    "value.converter.decimal.format": (0.05, ("NUMERIC",)),
    "value.converter.replace.null.with.default": (0.1, ("false",)),
    "message.prefix.include.list": (0.1, ("all-read.*",)),
    "event.processing.failure.handling.mode": (0.1, ("warn",)),
    "xmin.fetch.interval.ms": (0.0, ("100",)),
    "topic.delimiter": (0.05, ("_",)),
}


def random_options(random: Random, tables: list[Table]) -> dict[str, str]:
    """Properties beyond those of the connection."""
    options = {name: random.choice(values) for name, (chance, values) in _ONE_OF.items() if random.random() < chance}
    if "publication.autocreate.mode" in options:  # the engine's statement is wrong with either
        options.pop("publish.via.partition.root", None)
        options.pop("skipped.operations", None)
    if random.random() < 0.3:
        options["column.propagate.source.type"] = ".*"
    elif random.random() < 0.15:
        options["datatype.propagate.source.type"] = random.choice((r".+\.(int4|varchar|numeric)", r".+"))
    for _ in range(random.choice((0, 0, 1, 2))):
        _about_columns(random, tables, options)
    if random.random() < 0.2:
        _about_tables(random, tables, options)
    if random.random() < 0.15:
        _about_keys(random, tables, options)
    if "column.include.list" in options:  # the engine cannot read keys whose columns are hidden
        keys = [
            re.escape(f"{table.schema}.{table.name}") + r"(?:_\d)?\." + re.escape(name)
            for table in tables
            for name in table.key
        ]
        if "message.key.columns" in options:
            keys.append(re.escape(options["message.key.columns"].partition(",")[0]).replace(":", r"\."))
        options["column.include.list"] = ",".join([options["column.include.list"], *keys])
    if random.random() < 0.3:
        options.update(random_transforms(random))
    return options


def _column(random: Random, tables: list[Table]) -> tuple[Table, Column] | None:
    found = [(t, c) for t in tables if t.is_plain for c in t.columns[1:] if c.name.isascii() and c.name.isalnum()]
    return random.choice(found) if found else None


def _about_columns(random: Random, tables: list[Table], options: dict[str, str]) -> None:
    found = _column(random, tables)
    if found is None:
        return
    table, column = found
    if column.name in (*table.key, *table.unique):
        return
    name = f"{table.schema}.{table.name}.{column.name}"
    anything = rf"{table.schema}\.{table.name}\.c[0-4]"
    if set(table.key) & {f"c{digit}" for digit in range(5)}:
        anything = name
    chosen = random.choice(
        (
            ("column.exclude.list", anything),
            ("column.include.list", r".*\.n,.*\.c[0-6]"),
            ("column.truncate.to.2.chars", name),
            ("column.mask.with.5.chars", name),
            ("column.mask.hash.SHA-256.with.salt.pepper", name),
            ("column.mask.hash.v2.MD5.with.salt.pepper", anything),
        )
    )
    if chosen[0].startswith("column.include") and "column.exclude.list" in options:
        return
    if chosen[0].startswith("column.exclude") and "column.include.list" in options:
        return
    options[chosen[0]] = chosen[1]


def _about_tables(random: Random, tables: list[Table], options: dict[str, str]) -> None:
    plain = [rf"{table.schema}\.{table.name}" for table in tables if table.is_plain and not table.partitioned]
    if not plain:
        return
    chosen = ",".join(random.sample(plain, random.randrange(1, len(plain) + 1)))
    name = random.choice(("table.exclude.list", "table.include.list", "snapshot.include.collection.list"))
    options[name] = r"public\..*" if random.random() < 0.2 else chosen


def _about_keys(random: Random, tables: list[Table], options: dict[str, str]) -> None:
    found = _column(random, tables)
    if found is not None:
        table, column = found
        options["message.key.columns"] = f"{table.schema}.{table.name}:{column.name},n"
