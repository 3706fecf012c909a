"""MongoDB: Tailrace, a Debezium engine and a bare loop over raw batches read one backlog of a change stream.

`python benchmarks/mongodb.py [--rows N] [--times N] [--json FILE] [--snapshot]`. The engine runs if TAILRACE_REFERENCE
names it, see README.md. `--snapshot` measures a first snapshot of as many documents.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import measure
from contestants import Result
from harness import Course, arguments, run

from tailrace.override import override

sys.path.insert(0, str(Path(__file__).parents[1]))

from tailrace.connectors.mongodb.position import end_of, start_options
from tailrace.connectors.mongodb.snapshot.reads import cluster_time
from tests.servers.mongodb.server import Client, ReplicaSet

DATABASE, COLLECTION = "bench", "items"
AT_ONCE = 1000


@dataclass
class MongoCourse(Course):
    """The server, and where in its log the backlog lies."""

    servers: ReplicaSet
    rows: int
    start: int
    is_snapshot: bool
    connector = "mongodb"
    is_hidden = False

    @property
    def server(self) -> measure.Tree:
        """The server's process."""
        return measure.Tree(self.servers.members[0].pid)

    def properties(self) -> dict[str, str]:
        """A Debezium config that reads the backlog: events without schemas, no snapshot."""
        begin = {"snapshot.mode": "no_data", "capture.start.op.time": str(self.start)}
        return {
            **({"snapshot.mode": "initial_only"} if self.is_snapshot else begin),
            "connector.class": "io.debezium.connector.mongodb.MongoDbConnector",
            "mongodb.connection.string": self.servers.url(),
            "topic.prefix": "bench",
            "database.include.list": DATABASE,
            "key.converter.schemas.enable": "false",
            "value.converter.schemas.enable": "false",
        }

    @override
    def hide(self) -> None:
        """The position in the properties does."""

    @override
    def show(self) -> None: ...

    @override
    def bare(self) -> Result:
        """The answers of the change stream, or of `find`, not parsed."""
        server = self.server
        with self.servers.client() as client:
            own, server_before, begin = time.process_time(), server.cpu(), time.monotonic()
            if self.is_snapshot:
                for _ in client[DATABASE][COLLECTION].find_raw_batches():
                    pass
            else:
                for _ in _answers(client, self.start, end_of(cluster_time(client))):
                    pass
            seconds, cpu = time.monotonic() - begin, time.process_time() - own
        return Result(self.rows, seconds, cpu, server.cpu() - server_before, 0, {})


def backlog(client: Client, rows: int) -> int:
    """Write the documents; returns the cluster time before them."""
    start = cluster_time(client)
    items = client[DATABASE][COLLECTION]
    for first in range(0, rows, AT_ONCE):
        items.insert_many([_document(number) for number in range(first, min(first + AT_ONCE, rows))])
    return start + 1


def _document(number: int) -> dict[str, Any]:
    return {
        "_id": number,
        "group": number % 100,
        "name": f"item {number}",
        "price": number / 7,
        "active": number % 2 == 0,
        "tags": ["a", "b", f"t{number % 10}"],
        "place": {"street": f"Street {number}", "zip": str(10000 + number % 1000)},
        "note": "x" * 40,
    }


def _answers(client: Client, start: int, end: str) -> Iterator[bytes]:
    from bson.codec_options import CodecOptions
    from bson.raw_bson import RawBSONDocument

    raw: CodecOptions[RawBSONDocument] = CodecOptions(document_class=RawBSONDocument)
    stage = {"allChangesForCluster": True, "fullDocument": "updateLookup", **start_options(end_of(start - 1))}
    match = {"$match": {"ns.db": DATABASE}}
    with client.start_session() as session:
        command: dict[str, Any] = {"aggregate": 1, "pipeline": [{"$changeStream": stage}, match], "cursor": {}}
        answer = client.admin.command(command, codec_options=raw, session=session)
        while answer["cursor"]["postBatchResumeToken"]["_data"] < end:
            yield bytes(answer.raw)
            more = {"getMore": answer["cursor"]["id"], "collection": "$cmd.aggregate", "maxTimeMS": 100}
            if answer["cursor"].get("nextBatch", [1]) == []:
                return
            answer = client.admin.command(more, codec_options=raw, session=session)


def main() -> None:
    """Measure all in turn, several times."""
    given = arguments(__doc__ or "", rows=2_000_000, snapshot=True)
    with ReplicaSet(options={"oplogSize": "2048"}) as servers:
        with servers.client() as client:
            course = MongoCourse(servers, given.rows, backlog(client, given.rows), given.snapshot)
        run(course, given)


if __name__ == "__main__":
    main()
