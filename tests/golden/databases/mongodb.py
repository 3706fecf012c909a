"""Scenarios on MongoDB: a replica set of one member."""

from __future__ import annotations

import importlib.util
import inspect
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from pymongo import MongoClient

from tailrace.connectors.mongodb.position import end_of
from tailrace.connectors.mongodb.snapshot.reads import cluster_time
from tailrace.override import override
from tests.golden.databases.database import GoldenServer
from tests.golden.script import Directive
from tests.servers.mongodb.server import ReplicaSet


class GoldenMongo(GoldenServer):
    """Implements GoldenServer."""

    format = "mongodb-cdc"

    def __init__(self) -> None:
        self._set = ReplicaSet().start()
        self._client = self._set.client()

    @property
    def client(self) -> MongoClient[dict[str, Any]]:
        """The client that changes documents."""
        return self._client

    @override
    def places(self) -> Mapping[str, object]:
        return {"mongo_url": self._set.url()}

    @override
    def check(self, folder: Path, settings: Mapping[str, Any]) -> None:
        """There is nothing that a scenario could lack."""

    @override
    def prepare(self, folder: Path) -> None:
        self.clear()
        workload = _module(folder)
        if hasattr(workload, "setup"):
            workload.setup(self._client)

    @override
    def workload(self, folder: Path) -> Iterator[Directive]:
        running = _module(folder).run(self._client)
        if inspect.isgenerator(running):
            for directive in running:
                name, _, argument = str(directive).partition(" ")
                yield Directive(name, argument)

    @override
    def log_end(self) -> str:
        return end_of(cluster_time(self._client))

    @override
    def position(self, text: str) -> str:
        return text

    @override
    def clear(self) -> None:
        for name in self._client.list_database_names():
            if name not in ("admin", "config", "local"):
                self._client.drop_database(name)

    @override
    def close(self) -> None:
        self._client.close()
        self._set.close()


def _module(folder: Path) -> ModuleType:
    specification = importlib.util.spec_from_file_location(folder.name.replace("-", "_"), folder / "workload.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module
