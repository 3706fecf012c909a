"""Random transforms."""

from __future__ import annotations

from random import Random

_DEBEZIUM, _APACHE = "io.debezium.transforms.", "org.apache.kafka.connect.transforms."

_Transform = tuple[str, dict[str, str], dict[str, tuple[str, ...]]]

# type, then settings that are always given, then settings that are given in half of the cases
_UNWRAP: _Transform = (
    f"{_DEBEZIUM}ExtractNewRecordState",
    {},
    {
        "delete.tombstone.handling.mode": (
            *("drop", "tombstone", "rewrite", "rewrite-with-tombstone", "delete-to-tombstone"),
        ),
        "add.fields": ("op,table,schema", "op:o,source.db", "op,source.snapshot", "source.schema:t,op"),
        "add.headers": ("op", "db,table"),
        "add.fields.prefix": ("x_", ""),
    },
)
_OTHERS: tuple[_Transform, ...] = (
    (
        f"{_DEBEZIUM}ByLogicalTableRouter",
        {"topic.regex": r"srv\.(.*)", "topic.replacement": "all.$1"},
        {"key.field.name": ("origin",), "key.enforce.uniqueness": ("false",)},
    ),
    (
        f"{_DEBEZIUM}ExtractChangedRecordState",
        {"header.changed.name": "Changed"},
        {"header.unchanged.name": ("Unchanged",)},
    ),
    (f"{_DEBEZIUM}HeaderToValue", {"headers": "__debezium.newkey", "fields": "new_key", "operation": "copy"}, {}),
    (f"{_DEBEZIUM}TimezoneConverter", {"converted.timezone": "Europe/Paris"}, {}),
    (f"{_APACHE}RegexRouter", {"regex": r"srv\.public\.(.*)", "replacement": "cdc_$1"}, {}),
)
_OF_ROWS: tuple[_Transform, ...] = (
    (f"{_APACHE}ReplaceField$Value", {"exclude": "c1,c2"}, {"renames": ("c3:third", "n:number")}),
    (
        f"{_APACHE}InsertField$Value",
        {"static.field": "origin", "static.value": "here"},
        {"topic.field": ("topic_name",)},
    ),
    (f"{_APACHE}HoistField$Value", {"field": "row"}, {}),
    (f"{_APACHE}SetSchemaMetadata$Value", {"schema.name": "own.Name"}, {"schema.version": ("3",)}),
    (f"{_APACHE}ReplaceField$Key", {"renames": "n:number"}, {}),
)
_TABLES_ONLY = {
    "predicates": "tables",
    "predicates.tables.type": f"{_APACHE}predicates.TopicNameMatches",
    "predicates.tables.pattern": r"srv\.(?!message|transaction).*\..*",
}


def random_transforms(random: Random) -> dict[str, str]:
    """One transform, or rows without envelope and one after that."""
    if random.random() < 0.35:
        chosen = [random.choice(_OTHERS)]
    else:
        chosen = [_UNWRAP, random.choice(_OF_ROWS)] if random.random() < 0.4 else [_UNWRAP]
    properties = {"transforms": ",".join(f"t{number}" for number in range(len(chosen)))}
    for number, (kind, always, sometimes) in enumerate(chosen):
        settings: dict[str, str] = {"type": kind, **always}
        settings.update({name: random.choice(values) for name, values in sometimes.items() if random.random() < 0.5})
        properties.update({f"transforms.t{number}.{name}": value for name, value in settings.items()})
        if number > 0 or random.random() < 0.2:
            properties[f"transforms.t{number}.predicate"] = "tables"
            properties.update(_TABLES_ONLY)
    return properties
