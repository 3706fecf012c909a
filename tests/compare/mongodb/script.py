"""What the `workload.py` of a random scenario calls: commands of the server, kept as BSON.

A step is a directive ("wait", "stop", "start"), a command `[database, BSON in hex]`, or a transaction `{"commit": bool,
"commands": [...]}`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from bson import SON
from bson.codec_options import CodecOptions
from bson.raw_bson import RawBSONDocument
from pymongo import MongoClient
from pymongo.client_session import ClientSession
from pymongo.errors import OperationFailure

log = logging.getLogger(__name__)

Client = MongoClient[dict[str, Any]]
_RAW: CodecOptions[RawBSONDocument] = CodecOptions(document_class=RawBSONDocument)


def play(client: Client, steps: Sequence[Any]) -> Iterator[str]:
    """Run the commands; yields the directives. What the server refuses is left out: it refuses it every time."""
    for step in steps:
        if isinstance(step, str):
            yield step
        elif isinstance(step, dict):
            with client.start_session() as session:
                _transaction(client, session, step)
        else:
            with suppress(OperationFailure):
                _command(client, step, None)


def _transaction(client: Client, session: ClientSession, step: dict[str, Any]) -> None:
    session.start_transaction()
    try:
        for command in step["commands"]:
            _command(client, command, session)
        if step["commit"]:
            session.commit_transaction()
    except OperationFailure:
        log.info("the server has aborted a transaction")
    if session.in_transaction:
        session.abort_transaction()


def _command(client: Client, step: Sequence[str], session: ClientSession | None) -> None:
    database, command = step
    client[database].command(SON(RawBSONDocument(bytes.fromhex(command)).items()), codec_options=_RAW, session=session)
