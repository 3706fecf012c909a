"""The probes of every database: connections that fail, rights, and what a pipeline reads of rows, types and keys."""

from __future__ import annotations

import json
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from tailrace.connectors.ports import ConnectorPackage
from tailrace.connectors.probe import (
    BUSY,
    KEY,
    KEYED,
    LARGE,
    NONE,
    NOTE,
    QUIET,
    ROWS,
    TYPES,
    VALUE,
    Answer,
    Bench,
    Delete,
    Expectation,
    Insert,
    KeyCase,
    Move,
    NotAskedError,
    Probe,
    Update,
    Wrong,
)
from tailrace.connectors.retry import at_once
from tailrace.verify.pipeline import Event, ProbePipeline, reading

# What `check` says where none of the configured tables is there: in read-only mode.
OF_TABLES = ("tables", "publication", "collections")
_MANY = 20_000
_COMMITS = 5
_BUSY_S, _PER_SECOND = 3.0, 100
_SLOW_S = 60.0
_IDLE_S = 5.0
_CHUNKS = {
    "snapshot__mode": "no_data",
    "signal__enabled__channels": "source,file",
    "signal__poll__interval__ms": "1",
    "incremental__snapshot__chunk__size": "2",
}
_WRONG_VALUES = "Values of these types would be wrong in events: please send the report."
_LOSS = "Events would be missing or wrong in a pipeline of this server: please send the report."


def shared_probes(bench: Bench, package: ConnectorPackage) -> list[Probe]:
    """The probes, for the connector of a package."""
    shared = _Shared(bench, package)
    return [
        _drivers(bench),
        *(_refused(bench, package, wrong) for wrong in bench.wrong()),
        shared.checks(),
        shared.rows(),
        shared.large(),
        *(probe for group in bench.types for probe in shared.types(group)),
        *(shared.keys(f"{KEYED}{place}", case) for place, case in enumerate(bench.keys)),
        shared.quiet(),
        shared.busy(),
    ]


def _drivers(bench: Bench) -> Probe:
    def ask() -> Answer:
        return Answer(about=dict(bench.drivers()))

    meaning = "Types, errors and encryption are those of these libraries."
    return Probe("drivers.versions", "Which client libraries are in use?", meaning, ask, writes=False)


def _refused(bench: Bench, package: ConnectorPackage, wrong: Wrong) -> Probe:
    """A connection that fails. It writes into the server's log, so it counts as writing."""
    what = wrong.name.replace("_", " ")

    def ask() -> Answer:
        config = at_once(package.resolve({**bench.properties(ROWS), **wrong.properties}))
        begin = time.monotonic()
        try:
            bench.connect(config)
        except Exception as error:
            is_retried = bench.failures.is_transient(error) and not bench.failures.is_refused(error)
            facts = {"code": bench.code(error), "is_retried": is_retried}
            return Answer(facts, {"seconds": _shown(time.monotonic() - begin)})
        return Answer({"code": NONE, "is_retried": False})

    waits = "waits and tries again" if wrong.is_retried else "ends with a sentence that says what to correct"
    otherwise = f"A pipeline may end where it should wait, or wait where it should end, at: {what}."
    expected = (
        Expectation("code", wrong.codes, f"The message for `{what}` may be less clear than it should be."),
        Expectation("is_retried", (wrong.is_retried,), otherwise),
    )
    return Probe(
        f"drivers.{wrong.name}", f"What does the driver say at: {what}?", f"A pipeline {waits}.", ask, expected
    )


class _Shared:
    """The probes that need the package."""

    def __init__(self, bench: Bench, package: ConnectorPackage) -> None:
        self.bench, self.package = bench, package

    @contextmanager
    def _reading(self, *tables: str, **more: str) -> Iterator[ProbePipeline]:
        """A pipeline over tables; what it makes on the server goes with the block."""
        given = {name.replace("__", "."): value for name, value in more.items()}
        try:
            with reading(self.package, {**self.bench.properties(*tables), **given}) as pipeline:
                yield pipeline
        finally:
            self.bench.release(*tables)

    def checks(self) -> Probe:
        """What `tailrace check` says."""

        def ask() -> Answer:
            findings = self.package.admin(self.package.resolve(self.bench.properties(ROWS))).checks()
            shown = {True: "ok", None: "warning", False: "problem"}
            about = Counter(f"{each.name}: {shown[each.ok]}" for each in findings)
            ignored = () if self.bench.exists() else OF_TABLES
            problems = {each.name for each in findings if each.ok is False} - {*ignored}
            return Answer({"problems": sorted(problems)}, dict(about))

        wants = Expectation("problems", ([],), "`tailrace check` prints these problems, each with its remedy.")
        meaning = "A pipeline of this user can start."
        return Probe("rights.check", "What does `tailrace check` find?", meaning, ask, (wants,), writes=False)

    def rows(self) -> Probe:
        """Operations and images of single rows."""
        bench = self.bench

        def ask() -> Answer:
            bench.commit(Insert(ROWS, 1, 10, "a"))
            with self._reading(ROWS) as pipeline:
                _read(pipeline, 1, bench)
                bench.commit(Insert(ROWS, 2, 20, "b"), Update(ROWS, 2, 21))
                bench.commit(*((Move(ROWS, 2, 3),) if bench.has_moves else (Delete(ROWS, 2), Insert(ROWS, 3, 21, "b"))))
                bench.commit(Delete(ROWS, 3), Insert(ROWS, 4, None, "ж €"))
                _read(pipeline, len(wanted), bench)
                return Answer({"events": [_told(bench, event) for event in pipeline.events]})

        moved = bench.moves_as if bench.has_moves else ("d", "c")
        wanted = [
            ["r", 1, 10, "a"], ["c", 2, 20, "b"], ["u", 2, 21, "b"],
            *(["d", 2, 21, "b"] if each == "d" else [each, 3, 21, "b"] for each in moved),
            ["d", 3, 21, "b"], ["c", 4, None, "ж €"],
        ]  # fmt: skip
        meaning = "Events have the operations, the order and the values of the changes."
        question = "Which events do an insert, an update, a changed key, a delete and a null cause?"
        return Probe("rows.events", question, meaning, ask, (Expectation("events", (wanted,), _LOSS),))

    def large(self) -> Probe:
        """A transaction of many rows."""

        def ask() -> Answer:
            with self._reading(LARGE) as pipeline:
                pipeline.step()
                pipeline.step()
                begin = time.monotonic()
                self.bench.fill(LARGE, 1, _MANY)
                written = time.monotonic() - begin
                seconds = _read(pipeline, _MANY, self.bench)
                keys = {row[KEY] for event in pipeline.events if (row := self.bench.image(event["after"]))}
                facts = {"events": len(pipeline.events), "keys": len(keys)}
                return Answer(facts, {"seconds_to_write": _shown(written), "seconds_to_read": _shown(seconds)})

        wants = tuple(Expectation(fact, (_MANY,), _LOSS) for fact in ("events", "keys"))
        question = f"Do all of {_MANY:,} rows of one transaction arrive, each once?"
        return Probe("rows.large", question, "Large transactions are read whole.", ask, wants)

    def types(self, group: str) -> list[Probe]:
        """Values of every type of a group, from the table and from the log."""
        cases, table = self.bench.types[group], f"{TYPES}_{group}"
        logged: dict[str, Any] = {}

        def ask() -> Answer:
            with self._reading(table) as pipeline:
                _read(pipeline, 1, self.bench)
                self.bench.copy_types(group)
                _read(pipeline, 2, self.bench)
                first, second = (self.bench.image(event["after"]) or {} for event in pipeline.events[:2])
            logged.update(second)
            return self._typed(first, {case.name: case.event for case in cases})

        def ask_log() -> Answer:
            if not logged:
                raise NotAskedError("the log has not brought the row")
            return self._typed(logged, {case.name: case.in_log for case in cases})

        wants = (Expectation("different", ({},), _WRONG_VALUES),)
        meaning = "Values of all types arrive as they are."
        snapshot, log = (
            f"Which values of the {group} types does {each}?" for each in ("a snapshot read", "the log have")
        )
        return [
            Probe(f"types.{group}_snapshot", snapshot, meaning, ask, wants),
            Probe(f"types.{group}_log", log, meaning, ask_log, wants),
        ]

    def _typed(self, row: Mapping[str, Any], wanted: Mapping[str, Any]) -> Answer:
        refused = {name: code for name, code in self.bench.refused.items() if name in wanted}
        different = {
            name: {"expected": value, "found": row.get(name, "no such column")}
            for name, value in wanted.items()
            if name not in refused and not _same(row.get(name, ...), value)
        }
        equal = len(wanted) - len(refused) - len(different)
        # What a server refuses is a matter of its build and release.
        return Answer({"different": different}, {"equal": equal, "refused": refused})

    def keys(self, table: str, case: KeyCase) -> Probe:
        """An incremental snapshot of a table with a key that is compared in an unusual way."""

        def ask() -> Answer:
            if case.name in self.bench.refused:
                raise NotAskedError(f"the server refuses the type, code {self.bench.refused[case.name]}")
            with tempfile.TemporaryDirectory(prefix="tailrace-verify-") as folder:
                signals = Path(folder) / "signals.txt"
                with self._reading(table, signal__file=str(signals), **_CHUNKS) as pipeline:
                    pipeline.step()
                    pipeline.step()
                    data = {"data-collections": [self.bench.signalled(table)], "type": "incremental"}
                    signal = {"id": "verify", "type": "execute-snapshot", "data": data}
                    signals.write_text(json.dumps(signal) + "\n", encoding="utf-8")
                    _read_chunks(pipeline, len(case.keys), self.bench)
            return Answer({"rows": len({str(event["after"]) for event in pipeline.events})})

        missed = "Incremental snapshots of tables with such keys miss rows here: please send the report."
        wants = (Expectation("rows", (len(case.keys),), missed),)
        what = case.name.replace("_", " ")
        question = f"Does an incremental snapshot read every row of a table whose key is {what}?"
        return Probe(f"keys.{case.name}", question, "Tables with such keys can be read in chunks.", ask, wants)

    def quiet(self) -> Probe:
        """Time from a commit until its event is read, in a quiet database."""

        def ask() -> Answer:
            with self._reading(QUIET) as pipeline:
                pipeline.step()
                pipeline.step()
                times = []
                for number in range(1, _COMMITS + 1):
                    self.bench.commit(Insert(QUIET, number))
                    times.append(_read(pipeline, number, self.bench))
            return Answer(about={"commits": _COMMITS, "median_s": _shown(median(times)), "most_s": _shown(max(times))})

        wants = Expectation("most_s", most=_SLOW_S, otherwise="Events come late: see how often the server captures.")
        question = "How long after a commit is its event read?"
        return Probe("latency.quiet", question, "This is the delay of a pipeline in a quiet database.", ask, (wants,))

    def busy(self) -> Probe:
        """The same behind some seconds of many transactions."""

        def ask() -> Answer:
            with self._reading(BUSY) as pipeline:
                pipeline.step()
                pipeline.step()
                written = _write(self.bench, pipeline)
                seconds = _read(pipeline, written, self.bench)
                events = len(pipeline.events)
            return Answer({"is_whole": events == written}, {"transactions": written, "behind_s": _shown(seconds)})

        wants = (
            Expectation("is_whole", (True,), _LOSS),
            Expectation("behind_s", most=_SLOW_S, otherwise="The server captures more slowly than it is written to."),
        )
        question = "How far behind is a pipeline after some seconds of 100 transactions a second?"
        return Probe("latency.busy", question, "A pipeline keeps up with such traffic.", ask, wants)


def _write(bench: Bench, pipeline: ProbePipeline) -> int:
    """Write single rows for some seconds while the pipeline reads; how many."""
    written: list[int] = []
    failed: list[BaseException] = []

    def write() -> None:
        try:
            begin = time.monotonic()
            while (now := time.monotonic() - begin) < _BUSY_S:
                if len(written) < now * _PER_SECOND:
                    bench.commit(Insert(BUSY, len(written) + 1))
                    written.append(1)
                else:
                    time.sleep(0.001)
        except Exception as error:  # raised by who waits for it
            failed.append(error)

    writer = threading.Thread(target=write, name="tailrace-verify", daemon=True)
    writer.start()
    while writer.is_alive():
        pipeline.step()
        time.sleep(0.05)
    writer.join()
    if failed:
        raise failed[0]
    return len(written)


def _read(pipeline: ProbePipeline, count: int, bench: Bench) -> float:
    return pipeline.read_until(lambda events: len(events) >= count, bench.deadline_s)


def _read_chunks(pipeline: ProbePipeline, count: int, bench: Bench) -> None:
    """Read until so many rows have come, or until nothing is asked for any more and none comes."""
    begin = newest = time.monotonic()
    while len(pipeline.events) < count and time.monotonic() - begin < bench.deadline_s:
        before = len(pipeline.events)
        pipeline.step()
        if len(pipeline.events) > before or (pipeline.offset.get("snapshots") or {}).get("queue"):
            newest = time.monotonic()
        elif time.monotonic() - newest > _IDLE_S:
            return
        time.sleep(0.02)


def _told(bench: Bench, event: Event) -> Sequence[Any]:
    """An event as operation, key and values: those that it has, for a deleted row those before."""
    image = (bench.image(event["after"]) if event["op"] != "d" else bench.image(event["before"])) or {}
    return [event["op"], image.get(KEY), image.get(VALUE), image.get(NOTE)]


def _same(fact: Any, wanted: Any) -> bool:
    return type(fact) is type(wanted) and bool(fact == wanted)


def _shown(seconds: float) -> float:
    return round(seconds, 3)
