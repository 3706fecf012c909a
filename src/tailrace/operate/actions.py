"""Steers pipelines by HTTP in what Kafka Connect's interface lacks: tables are added, compared, read again, signalled.

Each action is that of the command of its name (`add`, `signal`, `reconcile`, `retry`), with the same refusals.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from tailrace.errors import TailraceError
from tailrace.operate.pipelines import Pipelines
from tailrace.operate.server import HttpRequest, Refusal, Response
from tailrace.operate.signal_content import content, refuse_unknown
from tailrace.operate.watch import Figures
from tailrace.pipeline import tables
from tailrace.pipeline.aside import retry
from tailrace.pipeline.comparing import ComparisonProgress, compare_all
from tailrace.pipeline.definition import Definition
from tailrace.pipeline.reconcile import ReconcileReport
from tailrace.pipeline.signaling import Sent, send
from tailrace.snapshot.signals import BLOCKING, INCREMENTAL

log = logging.getLogger(__name__)

# As of `tailrace reconcile`.
_WAIT_SECONDS = 60.0
_KINDS = (INCREMENTAL, BLOCKING, tables.NOT_READ)
_FIELDS = ("data-collections", "kind", "filter", "surrogate-key", "data", "id")


class Actions:
    """What can be done to the pipelines of this process by `POST /pipelines/<name>/<action>`."""

    def __init__(self, pipelines: Pipelines) -> None:
        self._pipelines = pipelines
        self._comparisons = dict[str, Comparison]()
        self._acts: Mapping[str, Callable[[Figures, Mapping[str, Any]], Response]] = {
            "add": self._add,
            "signal": self._signal,
            "reconcile": self._reconcile,
            "retry": self._retry,
        }

    def answer(self, request: HttpRequest) -> Response | None:
        """The answer, None for another path. Raises Refusal."""
        if request.path == "/comparisons" and request.method in ("GET", "HEAD"):
            return Response({name: each.shown() for name, each in list(self._comparisons.items())})
        parts = request.path.split("/")
        if request.method != "POST" or len(parts) != 4 or parts[1] != "pipelines" or parts[3] not in self._acts:
            return None
        for figures in self._pipelines.figures():
            if figures.definition.name == parts[2]:
                try:
                    return self._acts[parts[3]](figures, _given(request))
                except TailraceError as error:
                    raise Refusal.of(error, 409) from error
        raise Refusal(404, f"there is no pipeline {parts[2]}")

    def _add(self, figures: Figures, given: Mapping[str, Any]) -> Response:
        """Capture more tables, in the pipeline's file as well."""
        _only(given, "tables", "snapshot")
        names, kind = _names(given, "tables"), given.get("snapshot", INCREMENTAL)
        if not names or kind not in _KINDS:
            raise Refusal(400, f"send tables, and snapshot as one of {', '.join(_KINDS)}")
        file = self._pipelines.file(figures.definition.name)
        if file is None:
            raise Refusal(409, "this pipeline has no file that names its tables: send the signal add-tables")
        change = tables.add(file, names, kind)
        done = [f"{name} is added to {change.published_in}" for name in change.published]
        if change.edit is not None and change.edit.written:
            done.append(f"{change.edit.property} is changed in {file.name}")
        elif change.edit is not None:
            done.append(f"{file.name} cannot be changed safely: change {change.edit.property} by hand")
        done.append("the first start reads the file" if change.signal is None else _sent(change.signal))
        return Response({**asdict(change), "message": "; ".join(done)}, 202)

    def _signal(self, figures: Figures, given: Mapping[str, Any]) -> Response:
        """Send a signal."""
        _only(given, "type", *_FIELDS)
        type_, data = given.get("type"), given.get("data", {})
        texts = [given.get(name) for name in ("kind", "filter", "surrogate-key", "id")]
        if not isinstance(type_, str) or not all(text is None or isinstance(text, str) for text in texts):
            raise Refusal(400, f"send the signal's type, and any of {', '.join(_FIELDS)}")
        kind, filter_, surrogate, id_ = texts
        wanted = content(type_, json.dumps(data), _names(given, "data-collections"), kind, filter_, surrogate)
        if type_ == "execute-snapshot":
            refuse_unknown(figures.definition, wanted["data-collections"])
        return _told(send(figures.definition, type_, wanted, id_))

    def _retry(self, figures: Figures, given: Mapping[str, Any]) -> Response:
        """Have tables read again that are set aside."""
        _only(given, "tables")
        sent = retry(figures.definition, _names(given, "tables"))
        return Response({"message": "no table is set aside"}) if sent is None else _told(sent)

    def _reconcile(self, figures: Figures, given: Mapping[str, Any]) -> Response:
        """Compare the replica with its source, in the background: /comparisons says how far that is."""
        _only(given, "tables", "repair")
        name, repairs = figures.definition.name, given.get("repair", False)
        if not isinstance(repairs, bool):
            raise Refusal(400, "repair is true or false")
        if figures.definition.sink.replica is None:
            raise Refusal(409, "only the tables of a replica are compared, and this pipeline has another sink")
        earlier = self._comparisons.get(name)
        if earlier is not None and earlier.is_running:
            raise Refusal(409, f"the replica is being compared: {earlier.shown()['progress']}")
        self._comparisons[name] = Comparison(figures.definition, _names(given, "tables"), repairs=repairs)
        return Response({"message": "the replica is being compared with its source"}, 202)


class Comparison:
    """A comparison of a replica with its source, which runs in a thread from its creation on."""

    def __init__(self, definition: Definition, names: list[str], *, repairs: bool) -> None:
        self._definition, self._names, self._repairs = definition, names, repairs
        self._progress, self._reports, self._error = ComparisonProgress(), list[ReconcileReport](), ""
        self._thread = threading.Thread(target=self._compare, name=f"compare {definition.name}", daemon=True)
        self._thread.start()

    @property
    def is_running(self) -> bool:
        """Whether it is not at its end."""
        return self._thread.is_alive()

    def shown(self) -> dict[str, Any]:
        """How far it is, and what it has found, as JSON without the keys of rows."""
        reports = [asdict(each) for each in list(self._reports)]
        shown_tables = [{name: value for name, value in each.items() if name != "keys"} for each in reports]
        return {
            "is_running": self.is_running,
            "progress": str(self._progress),
            "error": self._error,
            "tables": sorted(shown_tables, key=lambda each: str(each["table"])),
        }

    def _compare(self) -> None:
        try:
            for report in compare_all(
                self._definition, self._names, _WAIT_SECONDS, self._progress, repairs=self._repairs
            ):
                self._reports.append(report)
        except TailraceError as error:
            self._error = str(Refusal.of(error, 409))
        except Exception as error:  # nobody waits for the thread: whoever looks at the comparison is told
            log.exception("the replica of %s cannot be compared", self._definition.name)
            self._error = f"{type(error).__name__}: {error}"


def _given(request: HttpRequest) -> Mapping[str, Any]:
    given = request.json()
    if given is not None and not isinstance(given, dict):
        raise Refusal(400, "the body should be a JSON object")
    return given or {}


def _only(given: Mapping[str, Any], *names: str) -> None:
    unknown = [name for name in given if name not in names]
    if unknown:
        raise Refusal(400, f"{', '.join(unknown)}: not known here, send {', '.join(names)}")


def _names(given: Mapping[str, Any], name: str) -> list[str]:
    names = given.get(name, [])
    if not isinstance(names, list) or not all(isinstance(each, str) for each in names):
        raise Refusal(400, f"{name} is a list of tables, each schema.table")
    return names


def _sent(sent: Sent) -> str:
    return f"signal {sent.id} is sent, it is taken {sent.taken}"


def _told(sent: Sent) -> Response:
    return Response({**asdict(sent), "message": _sent(sent)}, 202)
