"""The file that `init` writes: complete, commented, without the password, and read again as it was meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from tailrace.cli.init import SINKS, _write, secrets_of
from tailrace.cli.init import pipeline_file as file_of
from tailrace.config.filters import TableFilter
from tailrace.config.kinds import expression
from tailrace.config.options.databases import DATABASE_PORT
from tailrace.connectors import registry
from tailrace.connectors.ports import NewSource, TableOverview
from tailrace.connectors.postgres.admin.operations import NO_KEY
from tailrace.connectors.postgres.options import DATABASE_PASSWORD, SLOT_NAME
from tailrace.errors import ConfigError
from tailrace.model.table import TableId
from tailrace.pipeline.definition import load

FOUND = [
    TableOverview(TableId("shop", "public", "orders"), 1234, 5_600_000, True),
    TableOverview(TableId("shop", "odd, schema", "a+b.c$"), 0, 0, False, remark=NO_KEY),
]


def new_source(url: str) -> NewSource:
    return registry.of_url(url).load().new_source(url)


def pipeline_file(source: NewSource, sink: str) -> str:
    return file_of("postgres", source, registry.DEFAULT.load().capturing(FOUND), FOUND, sink)


@pytest.mark.parametrize("sink", SINKS)
def test_it_is_a_pipeline_that_captures_the_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sink: str) -> None:
    monkeypatch.setenv("PGPASSWORD", "hush")
    source = new_source("postgresql://me:other@db:6543/My-Shop")
    assert secrets_of(source) == {"database.password": "other"}, "as for libpq, the URL comes first"
    file = tmp_path / "pipeline.yaml"
    file.write_text(pipeline_file(source, sink), encoding="utf-8")
    assert "hush" not in file.read_text(encoding="utf-8")
    definition = load(file)
    assert definition.sink.kind == sink
    config = definition.config()
    assert config.need(DATABASE_PASSWORD) == "hush"
    assert config[DATABASE_PORT] == 6543
    assert config[SLOT_NAME] == "tailrace_my_shop"
    tables = TableFilter.from_config(config)
    assert tables.captures(TableId("", "public", "orders"))
    assert tables.captures(TableId("", "odd, schema", "a+b.c$"))
    assert not tables.captures(TableId("", "public", "orders2"))


def test_the_steps_it_suggests_are_right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSWORD", "")
    text = pipeline_file(new_source("postgres://db/shop"), "console")
    file = tmp_path / "pipeline.yaml"
    lines = text.splitlines()
    start = lines.index("# steps:")
    file.write_text("\n".join([*lines[:start], *(one[2:] for one in lines[start : start + 3]), *lines[start + 3 :]]))
    assert [list(step) for step in load(file).steps] == [["filter"], ["route"]]


def test_tables_without_key_are_pointed_out() -> None:
    text = pipeline_file(new_source("postgres://db/shop"), "console")
    assert "# public.orders: 1,234 rows, 5.6 MB\n" in text
    assert "NO KEY: updates and deletes need ALTER TABLE ... REPLICA IDENTITY FULL" in text


def test_a_comma_in_a_name_does_not_end_the_entry() -> None:
    assert expression(FOUND[1].id.schema, FOUND[1].id.table) == r"odd\, schema\.a\+b\.c\$"


def test_encryption_that_the_url_requires_is_in_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PGPASSWORD", raising=False)
    monkeypatch.delenv("PGSSLPASSWORD", raising=False)
    url = "postgresql://me:hush@db/shop?sslmode=verify-full&sslrootcert=/ca.crt&sslkey=k&sslcert=c&sslpassword=quiet"
    source = new_source(url)
    assert secrets_of(source) == {"database.password": "hush", "database.sslpassword": "quiet"}
    file = tmp_path / "pipeline.yaml"
    file.write_text(pipeline_file(source, "console"), encoding="utf-8")
    assert "hush" not in file.read_text(encoding="utf-8")
    assert "quiet" not in file.read_text(encoding="utf-8")
    monkeypatch.setenv("PGPASSWORD", "hush")
    monkeypatch.setenv("PGSSLPASSWORD", "quiet")
    config = load(file).config()
    assert {
        name: config.values[f"database.{name}"] for name in ("sslmode", "sslrootcert", "sslpassword", "password")
    } == {
        "sslmode": "verify-full",
        "sslrootcert": "/ca.crt",
        "sslpassword": "quiet",
        "password": "hush",
    }
    assert secrets_of(new_source(url)) == {"database.password": "hush", "database.sslpassword": "quiet"}
    assert secrets_of(new_source("postgresql://me@db/shop")) == {"database.password": "hush"}


def test_a_url_of_no_connector_is_refused_without_being_shown() -> None:
    with pytest.raises(
        ConfigError, match=r"no connector takes a URL of this scheme\n.*postgresql://user@host"
    ) as caught:
        new_source("oracle://me:hush@db/shop")
    assert "hush" not in str(caught.value)


def test_a_file_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be written: No such file or directory"):
        _write(tmp_path / "missing" / "pipeline.yaml", "")
