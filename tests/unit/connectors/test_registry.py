"""Finding a connector by name, class, URL and entry point; and the errors if there is none."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tailrace.connectors import registry
from tailrace.connectors.lazy_package import LazyPackage
from tailrace.connectors.registry import BUILT_IN, DEFAULT, POSTGRES, ConnectorEntry
from tailrace.errors import ConfigError
from tests.unit.connectors.installed import install

POSTGRES_CLASS = "io.debezium.connector.postgresql.PostgresConnector"
TOY = """
from tailrace.connectors.registry import ConnectorEntry

ENTRY = ConnectorEntry(
    name="toy", product="Toy", format="toy-cdc", package="toy_cdc:ToyPackage", classes=("com.acme.ToyConnector",),
    schemes=("toy://",), url="toy:///folder",
)


class ToyPackage:
    include_list = "toys"
"""


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed package that offers the connector `toy`."""
    install(tmp_path, monkeypatch, "toy_cdc", TOY, "toy = toy_cdc:ENTRY")


def test_a_connector_by_its_name() -> None:
    assert registry.named("postgres") is POSTGRES
    with pytest.raises(ConfigError, match=r"there is no connector 'postgre'\n  Remedy: did you mean postgres\?"):
        registry.named("postgre")


def test_a_package_adds_a_connector(toy: None) -> None:
    entry = registry.named("toy")
    assert (entry.format, entry.load().include_list) == ("toy-cdc", "toys")
    assert registry.of_url("toy:///here") == entry
    assert registry.of_source(None, {"connector.class": "com.acme.ToyConnector"}) == entry
    assert registry.named("postgres") is POSTGRES
    with pytest.raises(ConfigError, match=r"known are .*postgres, .*toy"):
        registry.named("nothing")


def test_an_entry_point_that_is_no_entry_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, "toy_cdc", TOY, "wrong = toy_cdc:TOY", "odd = toy_cdc:ToyPackage")
    with pytest.raises(ConfigError, match="connector: the entry point toy_cdc:TOY cannot be loaded"):
        registry.named("wrong")
    with pytest.raises(ConfigError, match=r"the entry point .odd. of the group .* is no ConnectorEntry"):
        registry.named("odd")


def test_a_pipeline_file_comes_before_the_class_and_may_not_contradict_it(toy: None) -> None:
    assert registry.of_source(None, {}) is DEFAULT
    assert registry.of_source(None, {"Connector_Class": f" {POSTGRES_CLASS} "}) is POSTGRES
    assert registry.of_source("postgres", {"connector.class": POSTGRES_CLASS}) is POSTGRES
    assert registry.of_source("toy", {}).name == "toy"
    with pytest.raises(ConfigError, match=r"says connector toy, but .*PostgresConnector is the class of postgres"):
        registry.of_source("toy", {"connector.class": POSTGRES_CLASS})


def test_a_class_that_no_connector_has() -> None:
    with pytest.raises(
        ConfigError, match=r"connector\.class: no connector corresponds to .*\n.*known are io\.debezium"
    ):
        registry.of_source(None, {"connector.class": "io.debezium.connector.mysql.MySqlConnector"})


def test_a_missing_driver_is_named_with_what_installs_it() -> None:
    entry = replace(POSTGRES, drivers=("psycopg", "no_such_driver"))
    with pytest.raises(ConfigError, match=r"missing: no_such_driver\)\n  Remedy: pip install 'tailrace\[postgres\]'"):
        entry.load()


def test_a_package_that_cannot_be_imported_is_an_error_of_ours() -> None:
    with pytest.raises(ConfigError, match="the connector x cannot be imported: No module named 'no_such_module'"):
        ConnectorEntry("x", "X", "x-cdc", "no_such_module:X").load()


def test_finding_a_connector_imports_neither_its_package_nor_its_drivers() -> None:
    """Spark imports every data source at its first look-up of a format."""
    program = (
        "import sys, pyspark_tailrace_postgres as p; assert p.DefaultSource.name() == 'postgres-cdc'; "
        "print([name for name in sys.modules if name.startswith(('psycopg', 'adbc', 'tailrace.connectors.postgres'))])"
    )
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "[]"


@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_each_part_that_a_package_names_can_be_imported(name: str) -> None:
    package = BUILT_IN[name].load()
    assert isinstance(package, LazyPackage)
    parts = (package.properties, package.blocks, package.connectors, package.admins, package.sources, package.benches)
    assert all(callable(package.part(part)) for part in parts)
