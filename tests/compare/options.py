"""Random properties of SQL Server and Db2 beyond single values: masks, keys, SELECTs and transforms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.compare.rows import Table

_DEBEZIUM, _APACHE = "io.debezium.transforms.", "org.apache.kafka.connect.transforms."
_UNWRAP = {
    "delete.tombstone.handling.mode": ("drop", "tombstone", "rewrite", "rewrite-with-tombstone", "delete-to-tombstone"),
    "add.fields": ("op,table", "source.schema:from,op", "op,source.snapshot,source.schema"),
    "add.headers": ("op", "db,schema"),
    "drop.fields.header.name": ("dropped",),
}
# Transforms of envelopes, and of rows.
_OF_ENVELOPES: tuple[dict[str, str], ...] = (
    {
        "type": f"{_DEBEZIUM}ExtractChangedRecordState",
        "header.changed.name": "Changed",
        "header.unchanged.name": "Same",
    },
    {"type": f"{_DEBEZIUM}ByLogicalTableRouter", "topic.regex": "(.*)[._]([^._]+)", "topic.replacement": "$1.all.$2"},
    {"type": f"{_APACHE}RegexRouter", "regex": "(.*)[._]([^._]+)", "replacement": "$2"},
    {"type": f"{_DEBEZIUM}TimezoneConverter", "converted.timezone": "+05:30"},
)
_OF_ROWS: tuple[dict[str, str], ...] = (
    {"type": f"{_APACHE}InsertField$Value", "static.field": "origin", "static.value": "here", "topic.field": "told"},
    {"type": f"{_APACHE}SetSchemaMetadata$Value", "schema.name": "own.Name", "schema.version": "3"},
)

# A deliberate difference of the outbox event router.
OUTBOX_NAMES = (r'value\.schema\.name: expected ".*\.Value"', "docs/transforms.md#differences-from-debezium")


def some(chance: Random, choices: Mapping[str, Sequence[str]], likely: float) -> dict[str, str]:
    """Properties with random values, each of them with that probability."""
    return {name: chance.choice(values) for name, values in choices.items() if chance.random() < likely}


def masks(chance: Random, tables: Sequence[Table]) -> dict[str, str]:
    """Masks of random columns that are in no key: those of keys differ by intention (decision 7)."""
    names = ("column.mask.with.5.chars", "column.mask.hash.SHA-256.with.salt.salt", "column.truncate.to.3.chars")
    plain = _plain(tables)
    return {
        name: ",".join(chance.sample(plain, min(3, len(plain)))) for name in names if plain and chance.random() < 0.12
    }


def keys(chance: Random, tables: Sequence[Table]) -> dict[str, str]:
    """Sometimes keys of a column that is in none, which may be null."""
    if chance.random() > 0.1 or not (able := _plain(tables)):
        return {}
    chosen = chance.choice(able)
    table = next(each for each in tables if chosen.startswith(f"{each.schema}.{each.name}."))
    name = f"{table.schema}.{table.name}"
    return {"message.key.columns": f"{name}:{chosen.removeprefix(f'{name}.')},{table.number}"}


def selects(chance: Random, tables: Sequence[Table]) -> dict[str, str]:
    """Sometimes another SELECT for a table of the first snapshot; the reference needs one database for it."""
    if chance.random() > 0.12 or len({table.database for table in tables}) > 1:
        return {}
    table = chance.choice(tables)
    name = f"{table.schema}.{table.name}"
    select = f"SELECT * FROM {table.quoted} WHERE {table.quote(table.number)} {chance.choice(('> 2', '< 6', '<> 3'))}"
    return {"snapshot.select.statement.overrides": name, f"snapshot.select.statement.overrides.{name}": select}


def transforms(chance: Random, topics: str) -> dict[str, str]:
    """Rows without envelope, perhaps with a transform of rows behind it, or another transform, of these topics."""
    if chance.random() < 0.3:
        chain = [chance.choice(_OF_ENVELOPES)]
    else:
        chain = [{"type": f"{_DEBEZIUM}ExtractNewRecordState", **some(chance, _UNWRAP, 0.4)}]
        if chance.random() < 0.3:
            chain.append(chance.choice(_OF_ROWS))
    return _chained(chain, topics)


def outbox(topics: str, columns: Sequence[str], chance: Random) -> dict[str, str]:
    """The outbox event router for a table of these columns: id, route, key, type, payload, number."""
    id_, route, key, kind, payload, number = columns
    settings = {
        "type": f"{_DEBEZIUM}outbox.EventRouter",
        "table.field.event.id": id_,
        "table.field.event.key": key,
        "table.field.event.payload": payload,
        "route.by.field": route,
        **some(chance, {"table.fields.additional.placement": (f"{kind}:header:eventType,{number}:envelope",)}, 0.6),
        **some(chance, {"table.expand.json.payload": ("true",), "route.tombstone.on.empty.payload": ("true",)}, 0.5),
        **some(chance, {"route.topic.replacement": ("out.${routedByValue}.events",)}, 0.3),
    }
    return _chained([settings], topics)


def _chained(chain: Sequence[Mapping[str, str]], topics: str) -> dict[str, str]:
    found = {
        "transforms": ",".join(f"t{place}" for place in range(len(chain))),
        "predicates": "mine",
        "predicates.mine.type": f"{_APACHE}predicates.TopicNameMatches",
        "predicates.mine.pattern": topics,
    }
    for place, settings in enumerate(chain):
        found |= {f"transforms.t{place}.{name}": text for name, text in settings.items()}
        if place == 0:
            found[f"transforms.t{place}.predicate"] = "mine"
    return found


def _plain(tables: Sequence[Table]) -> list[str]:
    """The names of columns that are in no key and need no quotes."""
    able = [
        f"{table.schema}.{table.name}.{column.name}"
        for table in tables
        for column in table.columns
        if not column.is_key
    ]
    return [name for name in able if name.replace(".", "").isalnum()]
