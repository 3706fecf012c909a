"""`tailrace init`: looks at a database and writes a commented pipeline file for it; can make its DDL triggers."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.markup import escape

from tailrace.cli.terminal import notes, print_json, results
from tailrace.config.kinds import expression
from tailrace.errors import ConfigError
from tailrace.model.quantity import size

if TYPE_CHECKING:
    from tailrace.connectors.postgres.operations import TableOverview

# Which environment variables the file names in place of secrets.
SECRETS = {"database.password": "PGPASSWORD", "database.sslpassword": "PGSSLPASSWORD"}
SINKS = {
    "replica": "  replica:\n    path: replica        # a Delta table each, kept equal to its source",
    "kafka": "  kafka:\n    bootstrap.servers: localhost:9092\n    # properties: {security.protocol: SASL_SSL}",
    "parquet": "  parquet:\n    path: events",
    "json": "  json:\n    path: events",
    "console": "  console: {}",
    "null": '  "null": {}',
}


def command(
    url: Annotated[str, typer.Argument(help="postgresql://user@host:port/database?sslmode=verify-full")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write.")] = Path("pipeline.yaml"),
    sink: Annotated[Literal["replica", "kafka", "parquet", "json", "console", "null"], typer.Option()] = "replica",
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
    ddl: Annotated[
        bool, typer.Option("--ddl", help="Make the DDL triggers in the database, also where there is a file.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="What was found as one line of JSON.")] = False,
) -> None:
    """Write a pipeline file for a database. The password ($PGPASSWORD, the URL, or asked for) is not written."""
    from tailrace.connectors.postgres.config import resolve
    from tailrace.connectors.postgres.ddl import install
    from tailrace.connectors.postgres.operations import tables

    is_kept = output.exists() and not force
    if is_kept and not ddl:
        raise ConfigError("exists already", where=str(output), remedy="Choose another --output, or --force.")
    properties, secrets = parse_url(url)
    if "database.password" not in secrets:
        asked = f"Password of {properties['database.user']}"
        secrets["database.password"] = typer.prompt(asked, hide_input=True, default="")
    config = resolve({**properties, **secrets})
    with notes.status("Looking at the database"):
        # A partitioned table is captured as a whole.
        found = [table for table in tables(config) if not table.is_partition]
    if not found and not is_kept:
        raise ConfigError("has no tables to capture", where=properties["database.dbname"], remedy="Check the database.")
    if not is_kept:
        output.write_text(pipeline_file(properties, found, sink), encoding="utf-8")
    if ddl:
        install(config)
    if json:
        print_json({"file": str(output), "tables": [f"{one.schema}.{one.table}" for one in found], "ddl": ddl})
        return
    file = escape(str(output))
    wrote = f"left [bold]{file}[/] as it is" if is_kept else f"wrote [bold]{file}[/]"
    results.print(f"{len(found)} tables found; {wrote}")
    if ddl:
        results.print("DDL triggers tailrace_ddl_end and tailrace_ddl_drop made, with the schema tailrace_ddl")
    exports = " ".join(f"{SECRETS[name]}=..." for name in secrets)
    results.print(f"Next: export {exports}, tailrace check {file}, tailrace run {file}")


def parse_url(url: str) -> tuple[dict[str, str], dict[str, str]]:
    """The connector's properties for a URL, with references for secrets, and the secrets that are known.

    The environment comes before the URL. Raises ConfigError.
    """
    from tailrace.connectors.postgres.url import properties_of

    given = properties_of(url)
    secrets = {name: value for name, value in given.items() if name in SECRETS}
    wanted = {name: SECRETS[name] for name in ("database.password", *secrets)}
    secrets |= {name: os.environ[variable] for name, variable in wanted.items() if variable in os.environ}
    references = {name: f"${{env:{variable}}}" for name, variable in wanted.items()}
    name = re.sub(r"[^a-z0-9_]", "_", given["database.dbname"].lower())
    properties = {
        "database.hostname": given["database.hostname"],
        "database.port": "5432",
        "database.user": "postgres",
        **{each: value for each, value in given.items() if each not in SECRETS},
        **references,
        "topic.prefix": name,
        "slot.name": f"tailrace_{name}"[:63],
        "publication.name": f"tailrace_{name}"[:63],
        "publication.autocreate.mode": "filtered",
    }
    return properties, secrets


def pipeline_file(properties: dict[str, str], found: list[TableOverview], sink: str) -> str:
    """The text of a pipeline file that captures the tables `found`."""
    import yaml

    name = properties["topic.prefix"]
    config = dict(properties)
    config["table.include.list"] = ",".join(expression(table.schema, table.table) for table in found)
    if any(table.is_partitioned for table in found):
        config["publish.via.partition.root"] = "true"
    listed = yaml.safe_dump(config, sort_keys=False, width=10_000, allow_unicode=True)
    lines = "".join(f"    {line}\n" for line in listed.splitlines())
    overview = "\n".join(f"    # {describe(table)}" for table in found)
    return f"""\
# A Tailrace pipeline. `tailrace check` says what the database still needs, `tailrace run` starts it.
name: {name}

source:
  connector: postgres
  # Debezium's properties as they are. Instead, the path of a connector's .json or .properties file may stand here.
  config:
    # Tables found, with rows as the planner estimates them:
{overview}
{lines}
# Optional, in this order on every change:
# steps:
#   - filter: {{tables: ["public\\\\..*"], operations: [create, update, delete]}}
#   - route: {{regex: "{name}\\\\.(.*)", replacement: "$1"}}

sink:
{SINKS[sink]}

# Where the position is kept. Without it the pipeline begins anew, so keep it as long as the slot.
checkpoint: checkpoint

# How often a batch starts: an interval, or availableNow to stop when all is read. Left out, it is 500ms, for a replica
# 5s while it follows the log.
# trigger: 500ms
"""


def describe(table: TableOverview) -> str:
    """A table in a line, with a warning if updates and deletes could not be told apart."""
    key = "" if table.key else "  NO KEY: updates and deletes need ALTER TABLE ... REPLICA IDENTITY FULL"
    name = f"{table.schema}.{table.table}".replace("\n", " ")
    return f"{name}: {table.rows:,} rows, {size(table.bytes)}{key}"
