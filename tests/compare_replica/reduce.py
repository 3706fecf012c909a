"""Looks for a shorter case that fails as well: `python -m tests.compare_replica.reduce FOLDER [RUNS]`.

FOLDER is the kept case of a seed. Statements are left out in ever smaller groups, as long as a table of the same name
still fails, in at most RUNS runs (60). The result is a case in `FOLDER-reduced`.
"""

from __future__ import annotations

import json
import logging
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.golden.run import session
from tests.golden.script import Directive, Statement, split
from tests.replica.case import Case
from tests.replica.run import Outcome, Servers, result_of

RUNS = 60


@dataclass
class Reduction:
    """The items of one case, and the runs that are left. `fails` runs a case and says whether it fails alike."""

    fails: Callable[[Sequence[Any], Sequence[Any]], bool]
    runs: int

    def reduced(self, setup: list[Any], work: list[Any]) -> tuple[list[Any], list[Any]]:
        """Setup and workload without what can be left out."""
        work = self._without(work, lambda items: self.fails(setup, items))
        setup = self._without(setup, lambda items: self.fails(items, work))
        return setup, self._without(work, lambda items: self.fails(setup, items))

    def _without(self, items: list[Any], fails: Callable[[Sequence[Any]], bool]) -> list[Any]:
        size = max(1, len(items) // 2)
        while self.runs > 0:
            at = 0
            while at < len(items) and self.runs > 0:
                shorter = items[:at] + items[at + size :]
                self.runs -= 1
                if len(shorter) < len(items) and fails(shorter):
                    items = shorter
                    print(f"{len(items)} left, {self.runs} runs to go", flush=True)
                else:
                    at += size
            if size == 1:
                return items
            size = max(1, size // 2)
        return items


def _failing(found: Outcome) -> set[str]:
    """What a failure is recognised by: the failing tables, or that the pipeline failed."""
    tables = {verdict.table for verdict in found.verdicts if not verdict.passes}
    return {"the pipeline"} if found.errors else tables


def _read(folder: Path) -> tuple[list[Any], list[Any]]:
    steps = folder / "steps.json"
    if steps.exists():
        document = json.loads(steps.read_text(encoding="utf-8"))
        return document["setup"], document["run"]
    setup, work = (list(split((folder / name).read_text(encoding="utf-8"))) for name in ("setup.sql", "workload.sql"))
    return setup, work


def _write(folder: Path, setup: Sequence[Any], work: Sequence[Any]) -> None:
    steps = folder / "steps.json"
    if steps.exists():
        steps.write_text(json.dumps({"setup": setup, "run": work}, indent=0) + "\n", encoding="utf-8")
        return
    for name, items in (("setup.sql", setup), ("workload.sql", work)):
        (folder / name).write_text("".join(map(_line, items)), encoding="utf-8")


def _line(item: Statement | Directive) -> str:
    if isinstance(item, Statement):
        return f"{item.text};\n"
    return f"-- @{item.name} {item.argument}".rstrip() + "\n"


def main(arguments: Sequence[str]) -> int:
    """The exit status: 0 if the case fails, 1 if it passes, 2 for other arguments."""
    if len(arguments) not in (1, 2):
        print("usage: python -m tests.compare_replica.reduce FOLDER [RUNS]", file=sys.stderr)
        return 2
    folder, runs = Path(arguments[0]), int(arguments[1]) if len(arguments) > 1 else RUNS
    logging.getLogger("tailrace").setLevel(logging.CRITICAL)
    with Servers() as servers, session() as spark, tempfile.TemporaryDirectory() as work:
        trial = Path(work) / folder.name
        shutil.copytree(folder, trial)
        known = _failing(result_of(Case(trial), servers, spark))
        if not known:
            print("it passes")
            return 1

        def fails(setup: Sequence[Any], items: Sequence[Any]) -> bool:
            _write(trial, setup, items)
            return bool(known & _failing(result_of(Case(trial), servers, spark)))

        found = Reduction(fails, runs).reduced(*_read(folder))
        _write(trial, *found)
        print("\n".join(result_of(Case(trial), servers, spark).lines()))
        kept = folder.with_name(f"{folder.name}-reduced")
        shutil.rmtree(kept, ignore_errors=True)
        shutil.copytree(trial, kept)
    print(f"the shorter case is in {kept}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
