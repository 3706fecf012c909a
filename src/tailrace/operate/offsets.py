"""Reads, changes and resets offsets as Kafka Connect's REST interface does; words and statuses are those of Connect 4.

A position is Spark's, the server's and the sink's in agreement. It can be forgotten as a whole, so that the next start
begins from the beginning. Another position cannot be set: what is between it and the stored one would be lost, or be
written twice, and a replica or a server that has moved on would not agree with it.
"""

from __future__ import annotations

from typing import Any

from tailrace.config.options.topics import TOPIC_PREFIX
from tailrace.errors import TailraceError
from tailrace.operate.condition import Condition
from tailrace.operate.server import Refusal, Response
from tailrace.operate.watch import Figures
from tailrace.pipeline.reset import reset

_DONE = "The offsets for this connector have been {} successfully"
_STOP_FIRST = (
    "Connectors must be in the STOPPED state before their offsets can be modified. This can be done for the specified "
    "connector by issuing a 'PUT' request to the '/connectors/{}/stop' endpoint"
)
_ANOTHER = (
    "no offset can be set but null, which resets the connector: between the stored position and another one changes "
    "would be lost or come twice, and checkpoint, server and sink would disagree"
)


def stored(figures: Figures) -> dict[str, Any]:
    """The offset of the newest committed micro-batch, in Connect's form; none before the first."""
    offset = figures.status.offset
    if offset is None:
        return {"offsets": []}
    return {"offsets": [{"partition": _partition(figures), "offset": dict(offset)}]}


def _partition(figures: Figures) -> dict[str, str]:
    return {"server": figures.config[TOPIC_PREFIX]}


def changed(method: str, figures: Figures, body: Any) -> Response:
    """Reset the offset, or set it to itself or to null, of a stopped pipeline. Raises Refusal."""
    if method not in ("PATCH", "DELETE"):
        raise Refusal(405, "offsets are read by GET, changed by PATCH and reset by DELETE")
    wanted = _wanted(figures, body) if method == "PATCH" else None
    if figures.status.condition is not Condition.STOPPED:
        raise Refusal(400, _STOP_FIRST.format(figures.definition.name))
    if wanted is not None:
        if wanted != figures.status.offset:
            raise Refusal(400, _ANOTHER)
        return Response({"message": _DONE.format("altered")})
    try:
        done = reset(figures.definition)
    except TailraceError as error:
        raise Refusal.of(error, 400) from error
    return Response({"message": "; ".join([_DONE.format("altered" if method == "PATCH" else "reset"), *done])})


def _wanted(figures: Figures, body: Any) -> Any:
    """The offset of a PATCH, None for null. Raises Refusal for other partitions than the one that there is."""
    offsets = body.get("offsets") if isinstance(body, dict) else None
    if not offsets:
        raise Refusal(400, "Partitions / offsets need to be provided for an alter offsets request")
    partition = _partition(figures)
    is_formed = isinstance(offsets, list) and all(isinstance(each, dict) and "offset" in each for each in offsets)
    if not is_formed or [each.get("partition") for each in offsets] != [partition]:
        raise Refusal(400, f"a pipeline has one partition, {partition}: send one entry with its offset")
    return offsets[0]["offset"]
