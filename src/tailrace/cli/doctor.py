"""`tailrace doctor`: gathers what a maintainer needs to know of a pipeline into one archive without secrets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from tailrace.cli.terminal import notes, print_json, results


def command(
    pipeline: Annotated[Path, typer.Argument(help="The pipeline file (YAML).")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The archive to write.")] = Path("doctor.zip"),
    json: Annotated[bool, typer.Option("--json", help="Print the archive's content as one line of JSON.")] = False,
) -> None:
    """Gather what a helper needs, without secrets. It is checks, status, positions and logs, and no rows."""
    from tailrace.errors import ConfigError
    from tailrace.operate.doctor import write
    from tailrace.pipeline.definition import load

    definition = load(pipeline)
    try:
        with notes.status("Looking at checkpoint, database and logs"):
            names = write(definition, pipeline, out)
    except OSError as error:
        raise ConfigError(
            f"cannot be written: {error.strerror}", where=str(out), remedy="name another --out"
        ) from error
    if json:
        print_json({"archive": str(out), "files": names})
    else:
        results.print(f"{escape(str(out))} has {len(names)} files. Look through them before you send it.")
