"""Random cases of MongoDB's replicas."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

from bson import Decimal128, Int64

from tests.compare.mongodb.changes import Changes, Collection, Command, as_step
from tests.compare.mongodb.options import base
from tests.compare.mongodb.scenarios import WORKLOAD
from tests.compare.mongodb.values import Document, Values
from tests.compare_replica.chances import CHECK, interrupted, kills, reconfigured
from tests.compare_replica.folder import write_case

_COLLECTIONS = (("shop", "docs"), ("shop", "orders"), ("shop", "a.b"), ("other", "docs"), ("other", "odd-name ä"))
_MODES: tuple[dict[str, str], ...] = (
    {},
    {},
    {"capture.mode": "change_streams"},
    {"capture.mode": "oplog"},
    {"capture.mode": "change_streams_update_full", "capture.mode.full.update.type": "post_image"},
    {"capture.mode": "change_streams_update_full_with_pre_image"},
)
_LISTS: tuple[dict[str, str], ...] = (
    {},
    {},
    {},
    {"database.include.list": "shop"},
    {"collection.include.list": "shop[.].*,other[.]docs"},
    {"collection.exclude.list": ".*orders"},
    {"collection.include.list": "shop.docs,shop.a.b", "filters.match.mode": "literal"},
)
_COLUMNS = (
    r"shop\.docs: a INT, n DOUBLE, name STRING, flag BOOLEAN, when TIMESTAMP, total DECIMAL(10,2)",
    r".*\.docs: list ARRAY<INT>, sub STRUCT<a: INT, n: STRING>, b BIGINT, c BINARY",
    r".*: a STRING, b STRING, list STRING",
)


def write(seed: int, folder: Path) -> None:
    """Write the case of a seed into the empty folder."""
    chance = Random(f"replica mongodb {seed}")
    process = seed % 8 == 0
    properties = {**base(), **chance.choice(_MODES), **chance.choice(_LISTS)}
    replica: dict[str, Any] = {"process": True} if process else {}
    if chance.random() < 0.25:
        properties["document.columns"] = chance.choice(_COLUMNS)
        replica["sink"] = {"out_of_range": chance.choice(("text", "null"))}
    if chance.random() < 0.15:
        properties["json.serialization.mode"] = chance.choice(("relaxed", "extended", "strict"))
    if chance.random() < 0.4:
        properties["incremental.snapshot.chunk.size"] = chance.choice(("2", "5"))
    made = _Case(chance)
    setup, run = made.setup(), made.run(process)
    settings = Random(f"settings of replica mongodb {seed}")
    run = reconfigured(settings, run, properties, _changing(properties))
    steps = {"setup": setup, "run": [_directive(line) for line in run]}
    (folder / "steps.json").write_text(json.dumps(steps, indent=0) + "\n", encoding="utf-8")
    (folder / "workload.py").write_text(WORKLOAD, encoding="utf-8")
    write_case(folder, properties, replica)


def _changing(properties: dict[str, str]) -> dict[str, tuple[str | None, ...]]:
    """The properties that change between two starts, with their values."""
    changing: dict[str, tuple[str | None, ...]] = {
        "json.serialization.mode": (None, "relaxed", "extended"),
        "capture.mode": (None, "change_streams", "oplog"),
    }
    if "document.columns" in properties:
        changing["document.columns"] = (None, *_COLUMNS)
    if not {*properties} & {"collection.include.list", "collection.exclude.list", "filters.match.mode"}:
        changing["collection.exclude.list"] = (None, None, ".*[.]docs", "shop[.].*", ".*fresh|.*orders")
    return changing


class _Case:
    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self._changes = Changes(chance, Values(chance, plain=False, numbers=False))
        self._collections = [Collection(*name) for name in _COLLECTIONS]
        self._alters = chance.random() < 0.85

    def setup(self) -> list[Any]:
        """Collections, with and without images, some with documents."""
        steps = []
        for collection in self._collections:
            options: Document = {"create": collection.name}
            if self._chance.random() < 0.6:
                options["changeStreamPreAndPostImages"] = {"enabled": True}
            if self._chance.random() < 0.1:
                options |= {"clusteredIndex": {"key": {"_id": 1}, "unique": True}}
            elif self._chance.random() < 0.1:
                options |= {"capped": True, "size": 1_000_000, "max": 8}
                options.pop("changeStreamPreAndPostImages", None)
            steps.append(as_step((collection.database, options)))
            if self._chance.random() < 0.8:
                steps.append(as_step(self._changes.insert(collection, self._chance.randrange(1, 9))))
        return steps

    def run(self, process: bool) -> list[Any]:
        """Changes, and commands that the log tells of by other events or not at all; a check after each phase."""
        lines: list[Any] = []
        for _ in range(self._chance.randrange(2, 5)):
            parts = [self._part() for _ in range(self._chance.randrange(3, 9))]
            lines += [*interrupted(self._chance, parts, kills(self._chance, process)), CHECK]
        return lines

    def _part(self) -> list[Any]:
        draw = self._chance.random()
        if self._alters and draw < 0.25:
            return [as_step(command) for command in self._altered(self._pick())]
        if draw < 0.4:
            return [as_step(command) for command in self._number_keys(self._pick())]
        if draw < 0.5:
            return [as_step(command) for command in self._many(self._pick())]
        self._changes.settle()
        commands = [as_step(self._any()) for _ in range(self._chance.randrange(1, 6))]
        if self._chance.random() < 0.2:
            return [{"commit": self._chance.random() < 0.7, "commands": commands}]
        return commands

    def _any(self) -> Command:
        if self._chance.random() < 0.5:
            self._changes.settle()  # one document may be changed again and again
        return self._changes.any(self._pick())

    def _pick(self) -> Collection:
        return self._chance.choices(self._collections, (6, 4, 2, 2, 2))[0]

    def _number_keys(self, collection: Collection) -> list[Command]:
        """Documents whose `_id` becomes an equal number of another type."""
        number = self._chance.randrange(3)
        kinds = (number, Int64(number), float(number), Decimal128(f"{number}.0"), -0.0 if number == 0 else number)
        one, two = self._chance.choice(kinds), self._chance.choice(kinds)
        key: Any = one if self._chance.random() < 0.7 else {"a": one}
        other: Any = two if not isinstance(key, dict) else {"a": two}
        name, database, value = collection.name, collection.database, self._chance.randrange(100)
        delete = {"delete": name, "deletes": [{"q": {"_id": key}, "limit": 1}]}
        insert = {"insert": name, "documents": [{"_id": other, "v": value}]}
        replace = {"update": name, "updates": [{"q": {"_id": key}, "u": {"_id": other, "v": value}, "upsert": True}]}
        update = {"update": name, "updates": [{"q": {"_id": key}, "u": {"$set": {"v": value}}}]}
        chosen = self._chance.choice(([delete, insert], [replace], [replace, update], [insert], [delete], [update]))
        return [(database, command) for command in chosen]

    def _many(self, collection: Collection) -> list[Command]:
        """One command for many documents."""
        name, n = collection.name, self._chance.randrange(10)
        options: tuple[Document, ...] = (
            {"update": name, "updates": [{"q": {}, "u": {"$set": {"many": n}}, "multi": True}]},
            {"update": name, "updates": [{"q": {}, "u": {"$inc": {"counter": 1}}, "multi": True}]},
            {"update": name, "updates": [{"q": {}, "u": [{"$set": {"copy": "$$ROOT._id"}}], "multi": True}]},
            {"delete": name, "deletes": [{"q": {"many": {"$lt": n}}, "limit": 0}]},
            {"update": name, "updates": [{"q": {"many": n}, "u": {"$unset": {"many": 1}}, "multi": True}]},
        )
        return [(collection.database, self._chance.choice(options))]

    def _altered(self, collection: Collection) -> list[Command]:
        """Commands that change collections as a whole."""
        name, database, chance = collection.name, collection.database, self._chance
        full, other = collection.full_name, self._pick()
        target = chance.choice((other.full_name, f"{database}.fresh", "shop.fresh"))
        rename = {"renameCollection": full, "to": target, "dropTarget": chance.random() < 0.7}
        into = {"aggregate": name, "pipeline": [{"$project": {"v": 1}}], "cursor": {}}
        out = chance.choice(({"$out": other.name}, {"$out": {"db": other.database, "coll": other.name}}))
        merge = {"$merge": {"into": {"db": other.database, "coll": other.name}, "whenMatched": "replace"}}
        images = {"collMod": name, "changeStreamPreAndPostImages": {"enabled": chance.random() < 0.5}}
        options: tuple[tuple[str, Document], ...] = (
            (database, {"drop": name}),
            ("admin", rename),
            ("admin", rename),
            (database, {"dropDatabase": 1}),
            (database, {**into, "pipeline": [*into["pipeline"], out]}),
            (database, {**into, "pipeline": [*into["pipeline"], merge]}),
            (database, images),
            (database, {"convertToCapped": name, "size": 1_000_000}),
            (database, {"create": name}),
            (database, {"createIndexes": name, "indexes": [{"key": {"a": 1}, "name": "a"}]}),
        )
        chosen = chance.choices(options, (3, 2, 2, 0.6, 2, 2, 2, 1, 1, 1))[0]
        if "drop" in chosen[1] or "dropDatabase" in chosen[1] or "renameCollection" in chosen[1]:
            for each in self._collections:
                if each is collection or ("dropDatabase" in chosen[1] and each.database == database):
                    each.documents = []
        return [chosen]


def _directive(line: Any) -> Any:
    """A directive of a script as `play` yields it."""
    return line.removeprefix("-- @") if isinstance(line, str) else line
