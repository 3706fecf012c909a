"""Records scenarios with the reference engine: `python -m tests.compare.recording FOLDER...` writes `expected.jsonl`.

TAILRACE_REFERENCE names the folder of the engine, as for tests.compare. The exit status is 0 if all are recorded.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.compare.engine import record
from tests.compare.generator import generator_of
from tests.golden.avro_records import save
from tests.golden.run import Servers
from tests.golden.scenario import Scenario


def main(arguments: Sequence[str]) -> int:
    """The exit status."""
    program = Path(os.environ["TAILRACE_REFERENCE"]) / "run.sh"
    failed = 0
    with Servers() as servers:
        for folder in arguments:
            scenario = Scenario(Path(folder))
            settings = generator_of(scenario.database).ENGINE
            with tempfile.TemporaryDirectory(prefix="tailrace-record-") as work:
                try:
                    events = record(scenario, servers.of(scenario), program, settings, Path(work))
                except Exception as error:  # whatever goes wrong in one scenario, the others are still recorded
                    print(f"{folder}: not recorded: {error}", flush=True)
                    failed += 1
                    continue
            save(scenario.folder, events)
            print(f"{folder}: {len(events)} events", flush=True)
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
