"""Random properties of the MongoDB connector."""

from __future__ import annotations

from random import Random

Properties = dict[str, str]

COLLECTIONS = (
    ("inventory", "docs"),
    ("inventory", "orders"),
    ("other", "docs"),
    ("other", "odd-name ä"),
    ("inventory", "a.b"),
)
SIGNALS = "inventory.signals"
LISTS = (
    "database.include.list",
    "database.exclude.list",
    "collection.include.list",
    "collection.exclude.list",
    "filters.match.mode",
    "capture.scope",
    "capture.target",
)

_UNWRAP = "io.debezium.connector.mongodb.transforms.ExtractNewDocumentState"
_OUTBOX = "io.debezium.connector.mongodb.transforms.outbox.MongoEventRouter"
_EXCLUDED = (
    "inventory.docs.a",
    "*.docs.sub.n",
    "*.*.list",
    "inventory.orders.sub.sub",
    "inventory.docs.list.a",
    "*.docs.b.c,*.*.name",
)
_RENAMED = (
    "inventory.docs.a:alpha",
    "*.docs.sub.n:number",
    "*.*.list:items",
    "inventory.docs.list.a:ex",
    "inventory.docs.n:a",
    "*.*.sub:below,inventory.docs.name:title",
)
_PIPELINES = (
    '[{"$match": {"operationType": {"$ne": "update"}}}]',
    '[{"$match": {"fullDocument.n": {"$ne": 1}}}]',
    '[{"$match": {"$or": [{"documentKey._id": {"$type": "int"}}, {"operationType": "delete"}]}}]',
)


def base() -> Properties:
    """What every scenario has."""
    return {
        "connector.class": "io.debezium.connector.mongodb.MongoDbConnector",
        "mongodb.connection.string": "${mongo_url}",
        "topic.prefix": "server1",
    }


def random_properties(chance: Random) -> Properties:
    """Properties for a workload without signals."""
    properties = {**base(), **_capture(chance), **_scope(chance), **_fields(chance)}
    single = {
        "skipped.operations": ("c", "u", "d", "u,d", "none"),
        "tombstones.on.delete": ("false",),
        "provide.transaction.metadata": ("true",),
        "snapshot.mode": ("no_data", "always", "when_needed"),
        "snapshot.include.collection.list": ("inventory.docs", "other[.].*"),
        "schema.name.adjustment.mode": ("avro", "avro_unicode"),
        "topic.prefix": ("server-1", "s1.x"),
        "topic.delimiter": ("_", "-"),
        "extended.headers.enabled": ("false",),
        "cursor.pipeline": _PIPELINES,
        "topic.naming.strategy": (
            "io.debezium.schema.DefaultTopicNamingStrategy",
            "io.debezium.schema.DefaultUnicodeTopicNamingStrategy",
        ),
        "skip.messages.without.change": ("true",),
    }
    for name, choices in single.items():
        if chance.random() < 0.12:
            properties[name] = chance.choice(choices)
    if "cursor.pipeline" in properties and chance.random() < 0.3:
        properties["cursor.pipeline.order"] = "user_first"
    return properties


def unwrap(chance: Random) -> Properties:
    """ExtractNewDocumentState with some of its options."""
    options = {
        "array.encoding": ("document", "document", "array"),
        "flatten.struct": ("true",),
        "flatten.struct.delimiter": ("__", "."),
        "delete.tombstone.handling.mode": (
            "drop",
            "tombstone",
            "rewrite",
            "rewrite-with-tombstone",
            "delete-to-tombstone",
        ),
        "add.fields": (
            "op",
            "op,source.collection:coll",
            "source.db,ts_ms",
            "updateDescription.updatedFields:changed",
            "transaction.id",
        ),
        "add.fields.prefix": ("x_", ""),
        "add.headers": ("op", "op,source.db", "source.collection:coll"),
        "add.headers.prefix": ("h_",),
        "drop.fields.from.key": ("true",),
    }
    return {"transforms": "unwrap", "transforms.unwrap.type": _UNWRAP, **_some("transforms.unwrap", options, chance)}


def outbox(chance: Random) -> Properties:
    """MongoEventRouter with some of its options."""
    options = {
        "collection.expand.json.payload": ("true",),
        "collection.fields.additional.placement": ("n:header", "n:envelope,type:header:kind", "name:envelope:title"),
        "collection.field.event.timestamp": ("at",),
        "collection.op.invalid.behavior": ("warn",),
        "route.topic.replacement": ("events.${routedByValue}",),
        "route.by.field": ("type",),
        "route.tombstone.on.empty.payload": ("true",),
        "collection.field.event.schema.version": ("version",),
    }
    chosen = _some("transforms.outbox", options, chance)
    return {"transforms": "outbox", "transforms.outbox.type": _OUTBOX, "database.include.list": "inventory", **chosen}


def _some(prefix: str, options: dict[str, tuple[str, ...]], chance: Random) -> Properties:
    return {f"{prefix}.{name}": chance.choice(choices) for name, choices in options.items() if chance.random() < 0.3}


def _capture(chance: Random) -> Properties:
    modes = (
        "change_streams",
        "change_streams_update_full",
        "change_streams_with_pre_image",
        "change_streams_update_full_with_pre_image",
    )
    properties = {} if chance.random() < 0.2 else {"capture.mode": chance.choice(modes)}
    if "update_full" in properties.get("capture.mode", "") and chance.random() < 0.3:
        properties["capture.mode.full.update.type"] = "post_image"
    return properties


def _scope(chance: Random) -> Properties:
    return chance.choice(
        (
            {},
            {},
            {"database.include.list": "inventory"},
            {"database.exclude.list": "other"},
            {"collection.include.list": "inventory.docs,other[.]docs"},
            {"collection.include.list": "inventory.a.b,other.odd-name ä", "filters.match.mode": "literal"},
            {"collection.exclude.list": ".*orders"},
            {"capture.scope": "database", "capture.target": "inventory"},
            {"capture.scope": "collection", "capture.target": "inventory.docs"},
        )
    )


def _fields(chance: Random) -> Properties:
    if chance.random() < 0.25:
        return {"field.exclude.list": ",".join(chance.sample(_EXCLUDED, chance.choice((1, 2))))}
    if chance.random() < 0.2:
        return {"field.renames": chance.choice(_RENAMED)}
    return {}
