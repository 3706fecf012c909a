"""Requests that MongoDB rejects, as `tailrace check` reports them."""

from __future__ import annotations

import time
from uuid import uuid4

from tailrace.connectors.finding import Finding
from tailrace.connectors.mongodb.admin import MongoAdmin
from tailrace.connectors.mongodb.config import resolve
from tests.conformance.mongodb import PASSWORD, USER
from tests.servers.mongodb.server import ReplicaSet


def problems(servers: ReplicaSet, options: str, **given: str) -> list[Finding]:
    address = f"mongodb://{servers.hosts}/?{options}"
    config = {"topic.prefix": "p", "mongodb.connection.string": address, "mongodb.password": PASSWORD, **given}
    return [each for each in MongoAdmin(resolve(config)).checks() if each.ok is False]


def test_another_name_of_the_set_is_an_error_after_one_try(mongodb: ReplicaSet) -> None:
    begun = time.monotonic()
    (found,) = problems(mongodb, "replicaSet=rsX&serverSelectionTimeoutMS=1000", **{"mongodb.user": USER})
    assert time.monotonic() - begun < 60, "tries without end would take longer than a test may"
    assert "no server can be reached" in found.what
    assert "replicaSet must be the set's name" in str(found.remedy)


def test_a_user_of_one_database_gets_the_setting_to_watch_it(mongodb: ReplicaSet) -> None:
    user = f"reader{uuid4().hex[:8]}"
    mongodb.create_user(user, PASSWORD, [{"role": "read", "db": "shop"}])
    (found,) = problems(mongodb, "replicaSet=rs0", **{"mongodb.user": user})
    assert found.what == "the change stream cannot be opened: not authorized on admin"
    assert "set capture.scope=database and capture.target=shop, which the user may read" in str(found.remedy)
    watched = {"mongodb.user": user, "capture.scope": "database", "capture.target": "shop"}
    assert problems(mongodb, "replicaSet=rs0", **watched) == []
