"""Compares Tailrace with the reference engine: `python -m tests.compare DATABASE SEEDS [FOLDER]`.

SEEDS is a list of numbers and ranges, which make random scenarios, and of names of written ones, or `cases` for all of
these: `1-20,35,pagila`. A seed always makes the same scenario. TAILRACE_REFERENCE names the folder of the engine. The
scenario of a seed with differences is kept in FOLDER (.work/compare) with both recordings; `make golden SCENARIOS=...`
repeats it. The exit status is 0 if every seed is equal, or its differences are explained.
"""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tailrace.spark.java_errors import summary
from tests.compare.cases import cases, write_case
from tests.compare.engine import EngineError, record
from tests.compare.generator import DATABASES, Generator, generator_of
from tests.golden.avro_records import in_avro, read, save
from tests.golden.compare import Event, compare
from tests.golden.databases.database import GoldenServer
from tests.golden.run import Servers
from tests.golden.scenario import DirectStream, Scenario, replay

EQUAL, EXPLAINED, DIFFERENT, NOT_RECORDED = "equal", "explained", "different", "not recorded"
SHOWN = 5


@dataclass(frozen=True)
class Comparer:
    """What all seeds of a run share."""

    generator: Generator
    program: Path
    kept: Path
    servers: Servers

    cases: Mapping[str, Path]
    avro: bool = False

    def outcome(self, seed: str) -> str:
        """Compare one seed, print what was found and return what it counts as."""
        folder = self.kept / seed
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        if seed in self.cases:
            write_case(self.cases[seed], self.generator, folder)
        else:
            self.generator.write(int(seed), folder)
        if self.avro:
            in_avro(folder)
        scenario = Scenario(folder)
        server = self.servers.of(scenario)
        try:
            expected = self._record(scenario, server)
        except Exception as reason:  # whatever goes wrong with one seed, the others still run
            print(f"seed {seed}: {NOT_RECORDED}: {reason}", flush=True)
            return NOT_RECORDED
        outcome, lines = self._compare(scenario, server, expected)
        print(f"seed {seed}: {outcome}, {len(expected)} events", flush=True)
        if outcome in (EQUAL, EXPLAINED):
            shutil.rmtree(folder)
            return outcome
        (folder / "differences.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        for line in lines[:SHOWN]:
            print(f"  {line[:600]}")
        print(f"  {len(lines)} differences in {folder}", flush=True)
        return outcome

    def _record(self, scenario: Scenario, server: GoldenServer) -> list[Event]:
        with tempfile.TemporaryDirectory(prefix="tailrace-compare-") as work:
            try:
                events = record(scenario, server, self.program, self.generator.ENGINE, Path(work))
            except EngineError:
                shutil.copy(Path(work) / "engine.log", scenario.folder)
                raise
        save(scenario.folder, events)
        return list(map(read, events))

    def _compare(self, scenario: Scenario, server: GoldenServer, expected: list[Event]) -> tuple[str, list[str]]:
        try:
            found = replay(scenario, server, DirectStream(server, scenario))
        except Exception as error:  # as above
            return DIFFERENT, [f"failed: {summary(error)}"]
        _save(scenario.folder / "found.jsonl", found)
        lines = [str(difference) for difference in compare(expected, found, scenario.settings)]
        unexplained = [line for line in lines if not self._is_explained(line, scenario)]
        return (DIFFERENT, unexplained) if unexplained else (EXPLAINED if lines else EQUAL, lines)

    def _is_explained(self, line: str, scenario: Scenario) -> bool:
        patterns = [*dict(self.generator.EXPLAINED), *scenario.settings.get("explained", {})]
        return any(re.search(pattern, line) for pattern in patterns)


def seeds_of(text: str, cases: Iterable[str]) -> Iterator[str]:
    """The seeds of `1-20,pagila`. Raises ValueError for what is neither a number, a range nor a case."""
    for part in text.split(","):
        if part == "cases":
            yield from cases
        elif part in cases:
            yield part
        else:
            first, _, last = part.partition("-")
            yield from map(str, range(int(first), int(last or first) + 1))


def main(arguments: Sequence[str]) -> int:
    """The exit status: 0 if all is equal or explained, 1 if something differs, 2 if nothing can be compared."""
    reference = os.environ.get("TAILRACE_REFERENCE")
    if len(arguments) not in (2, 3) or arguments[0] not in DATABASES:
        print(f"usage: python -m tests.compare {{{','.join(DATABASES)}}} SEEDS [FOLDER]", file=sys.stderr)
        return 2
    if not reference:
        print("needs the reference engine: name its folder, which has a run.sh, in TAILRACE_REFERENCE", file=sys.stderr)
        return 2
    logging.disable(logging.WARNING)
    database, seeds, *folder = arguments
    kept = Path(folder[0] if folder else ".work/compare") / database
    with Servers() as servers:
        comparer = Comparer(
            generator_of(database),
            Path(reference) / "run.sh",
            kept,
            servers,
            cases(database),
            os.environ.get("FORMAT") == "avro",
        )
        outcomes = Counter(comparer.outcome(seed) for seed in seeds_of(seeds, comparer.cases))
    print(", ".join(f"{count} {outcome}" for outcome, count in outcomes.items()))
    return 1 if outcomes[DIFFERENT] else 0


def _save(path: Path, events: list[Event]) -> None:
    path.write_text("".join(json.dumps(event, ensure_ascii=False) + "\n" for event in events), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
