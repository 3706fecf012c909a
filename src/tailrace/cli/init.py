"""`tailrace init`: reads a database's catalog and writes a commented pipeline file; can install DDL triggers."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.markup import escape

from tailrace.cli.terminal import asking, notes, print_json, results
from tailrace.config.dialects import from_mapping
from tailrace.connectors import registry
from tailrace.errors import ConfigError
from tailrace.model.quantity import counted, size

if TYPE_CHECKING:
    from tailrace.connectors.ports import NewSource, TableOverview

SINKS = {
    "replica": "  replica:\n    path: replica        # a Delta table each, kept equal to its source",
    "kafka": "  kafka:\n    bootstrap.servers: localhost:9092\n    # properties: {security.protocol: SASL_SSL}",
    "parquet": "  parquet:\n    path: events",
    "json": "  json:\n    path: events",
    "console": "  console: {}",
    "null": '  "null": {}',
}


def command(
    url: Annotated[str, typer.Argument(help=registry.url_forms())],
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write.")] = Path("pipeline.yaml"),
    sink: Annotated[Literal["replica", "kafka", "parquet", "json", "console", "null"], typer.Option()] = "replica",
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
    ddl: Annotated[
        bool,
        typer.Option("--ddl", help="Also install triggers that report schema changes; an existing file stays."),
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print what was found as one line of JSON.")] = False,
) -> None:
    """Write a pipeline file for a database. The password (from environment, URL or prompt) is not written."""
    is_kept = output.exists() and not force
    if is_kept and not ddl:
        raise ConfigError("exists already", where=str(output), remedy="Choose another --output, or --force.")
    entry = registry.of_url(url)
    package = entry.load()
    source = package.new_source(url)
    secrets = secrets_of(source)
    admin = package.admin(package.resolve({**source.properties, **secrets}))
    with notes.status("Looking at the database"):
        # A partitioned table is captured as a whole.
        tables = [table for table in admin.overview() if not table.is_partition]
    if not tables and not is_kept:
        raise ConfigError("has no tables to capture", where=source.database, remedy="Check the database.")
    capturing = package.capturing(tables)
    admin = package.admin(package.resolve(from_mapping({**source.properties, **secrets, **capturing})))
    if not is_kept:
        _write(output, pipeline_file(entry.name, source, {**capturing, **admin.permitted()}, tables, sink))
    installed = admin.install_ddl() if ddl else None
    statements = admin.preparation([table.id for table in tables])
    if json:
        names = [table.name for table in tables]
        print_json({"file": str(output), "tables": names, "ddl": ddl, "preparation": statements})
        return
    file = escape(str(output))
    wrote = f"left [bold]{file}[/] as it is" if is_kept else f"wrote [bold]{file}[/]"
    results.print(f"{len(tables)} tables found; {wrote}")
    if installed:
        results.print(escape(installed))
    _print_next_steps(file, statements, [source.variables[name] for name in secrets])


def _print_next_steps(file: str, statements: list[str], variables: list[str]) -> None:
    """Print the statements for an administrator, and the commands that follow."""
    if statements:
        results.print("The database needs these first; leave out those of tables that you do not want:")
        for statement in statements:
            results.print(escape(statement), soft_wrap=True, highlight=False)
    exports = " ".join(f"{variable}=..." for variable in variables)
    results.print(f"Next: export {exports}, tailrace check {file}, tailrace run {file}")


def _write(output: Path, text: str) -> None:
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        remedy = "Create the folder, or choose another --output."
        raise ConfigError(f"cannot be written: {error.strerror}", where=str(output), remedy=remedy) from error


def secrets_of(source: NewSource) -> dict[str, str]:
    """The values of a new source's secrets: from its URL, else from the environment, else from a prompt."""
    variables = {name: variable for name, variable in source.variables.items() if variable in os.environ}
    secrets = {**{name: os.environ[variable] for name, variable in variables.items()}, **source.secrets}
    with asking():
        asked = {
            name: typer.prompt(question, hide_input=True, default="")
            for name, question in source.prompts.items()
            if name not in secrets
        }
    return {**secrets, **asked}


def pipeline_file(
    connector: str, source: NewSource, capturing: Mapping[str, str | list[str]], tables: list[TableOverview], sink: str
) -> str:
    """The text of a pipeline file that captures these `tables`, which the properties `capturing` do."""
    import yaml

    config = {**source.properties, **capturing}
    listed = yaml.safe_dump(config, sort_keys=False, width=10_000, allow_unicode=True)
    lines = "".join(f"    {line}\n" for line in listed.splitlines())
    overview = "\n".join(f"    # {describe(table)}" for table in tables)
    return f"""\
# A Tailrace pipeline. `tailrace check` says what the database still needs, `tailrace run` starts it.
name: {source.name}

source:
  connector: {connector}
  # Debezium's properties as they are. Instead, the path of a connector's .json or .properties file may stand here.
  config:
    # Tables found, with rows as the server estimates them:
{overview}
{lines}
# Optional, in this order on every change:
# steps:
#   - filter: {{tables: ["public\\\\..*"], operations: [create, update, delete]}}
#   - route: {{regex: "{source.name}\\\\.(.*)", replacement: "$1"}}

sink:
{SINKS[sink]}

# Where the position is stored. Keep it as long as the pipeline: without it, the next start begins with a new snapshot.
checkpoint: checkpoint

# How often a batch starts: an interval, or availableNow to stop when all is read. Left out, it is 500ms, for a replica
# 5s while it follows the log.
# trigger: 500ms
"""


def describe(table: TableOverview) -> str:
    """A table in a line, with the connector's remark."""
    name = table.name.replace("\n", " ")
    remark = f"  {table.remark}" if table.remark else ""
    amount = "partitioned" if table.is_partitioned else f"{counted(table.rows, 'row')}, {size(table.bytes)}"
    return f"{name}: {amount}{remark}"
