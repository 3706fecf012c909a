"""Random scenarios of MongoDB."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

from tests.compare.beats import BINARY, Beats
from tests.compare.cases import write_settings
from tests.compare.mongodb import options
from tests.compare.mongodb.changes import Changes, Collection, as_step
from tests.compare.mongodb.values import Document, Values

ENGINE: dict[str, str] = {}

CONNECTION = options.base()

MARK = ""

EXPLAINED = (BINARY,)

WORKLOAD = '''"""The commands of a random scenario."""

import json
from pathlib import Path

from tests.compare.mongodb.script import play

STEPS = json.loads((Path(__file__).parent / "steps.json").read_text(encoding="utf-8"))


def setup(client):
    list(play(client, STEPS["setup"]))


def run(client):
    yield from play(client, STEPS["run"])
'''


def write(seed: int, folder: Path) -> None:
    """Write the scenario of a seed into an empty folder, as Generator.write says."""
    chance = Random(seed)
    kind = chance.choices(("plain", "unwrap", "outbox", "signal"), (60, 20, 8, 12))[0]
    properties = options.random_properties(chance)
    if kind == "unwrap":
        properties |= options.unwrap(chance)
    if kind == "outbox":
        properties = {**options.base(), **options.outbox(chance)}
    # The reference does not load an open transaction from its offset, so a stop loses the end that it still owes.
    settings: Document = {"any_snapshot_order": True, "lost_ends": True}
    if kind == "signal":
        for name in (*options.LISTS, "cursor.pipeline"):  # the signals have to come through
            properties.pop(name, None)
        properties |= {
            "database.include.list": "inventory",
            "signal.data.collection": options.SIGNALS,
            "incremental.snapshot.chunk.size": chance.choice(("2", "3", "100")),
        }
        settings |= {"settle_seconds": 6, "unordered_reads": True}
    beats = Beats.of(seed, "mongodb")
    properties |= beats.properties
    if collapsed := beats.rules(acts=False):
        settings["collapse_topics"] = collapsed
    made = _Scenario(chance, kind)
    steps = {"setup": made.setup(), "run": made.run()}
    (folder / "steps.json").write_text(json.dumps(steps, indent=0) + "\n", encoding="utf-8")
    (folder / "workload.py").write_text(WORKLOAD, encoding="utf-8")
    write_settings(folder, properties, settings)


class _Scenario:
    def __init__(self, chance: Random, kind: str) -> None:
        self._chance, self._kind = chance, kind
        # The reference takes the chunks of an incremental snapshot by keys of few types.
        self._values = Values(chance, plain=kind == "unwrap" and chance.random() < 0.9, numbers=kind == "signal")
        self._changes = Changes(chance, self._values)
        self._collections = [Collection(*name) for name in options.COLLECTIONS]

    def setup(self) -> list[Any]:
        """Collections that keep images, some with documents."""
        steps = []
        for collection in self._collections:
            images = {"create": collection.name, "changeStreamPreAndPostImages": {"enabled": True}}
            steps.append(as_step((collection.database, images)))
            if self._kind != "outbox" and self._chance.random() < 0.6:
                steps.append(as_step(self._changes.insert(collection, self._chance.randrange(1, 6))))
        self._changes.settle()
        return steps

    def run(self) -> list[Any]:
        """Changes in phases; between them all is read."""
        if self._kind == "outbox":
            return self._outbox()
        steps = self._phase()
        for _ in range(2):
            steps += self._chance.choices((["wait"], ["stop", *self._phase(), "start", "wait"]), (5, 1))[0]
            self._changes.settle()
            if self._kind == "signal":
                steps += self._signal()
            steps += self._phase()
        # The reference ends a transaction when the next change comes.
        last = as_step(self._changes.insert(self._collections[0]))
        return [*steps, "wait", last]

    def _phase(self) -> list[Any]:
        steps: list[Any] = []
        for _ in range(self._chance.randrange(4, 12)):
            if self._chance.random() < 0.1:
                commands = [as_step(self._changes.any(self._pick())) for _ in range(self._chance.randrange(1, 4))]
                steps.append({"commit": True, "commands": commands})
            else:
                steps.append(as_step(self._changes.any(self._pick())))
        return steps

    def _pick(self) -> Collection:
        return self._chance.choices(self._collections, (6, 3, 2, 1, 1))[0]

    def _signal(self) -> list[Any]:
        names = [
            collection.full_name
            for collection in self._chance.sample(self._collections[:2], self._chance.choice((1, 2)))
        ]
        kind = self._chance.choice(("incremental", "incremental", "blocking"))
        data = {"data-collections": names, "type": kind}
        signal = {"_id": f"signal {self._chance.randrange(10**6)}", "type": "execute-snapshot", "data": data}
        return [as_step(("inventory", {"insert": "signals", "documents": [signal]})), "wait"]

    def _outbox(self) -> list[Any]:
        values, chance = self._values, self._chance
        steps: list[Any] = []
        for number in range(12):
            payload = chance.choice((values.document, lambda: {"id": 7, "lines": [1, 2]}, values.text, values.scalar))()
            document = {
                "_id": values.key(number),
                "aggregatetype": chance.choice(("Order", "Cust omer")),
                "aggregateid": chance.choice(("7", "x")),
                "type": chance.choice(("Created", "Gone")),
                "payload": payload,
                "n": chance.choice((1, 2)),
                "name": "é",
                "at": values.long(),
                "version": 1,
            }
            steps.append(as_step(("inventory", {"insert": "docs", "documents": [document]})))
        return steps
