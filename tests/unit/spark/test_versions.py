"""Which Spark the source accepts, and what is said where there is none, an older or a newer one."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyspark
import pytest
from pyspark.sql.pandas import types as pandas_types
from pyspark.sql.types import StructField, StructType, TimestampType

from tailrace.errors import TailraceError
from tailrace.spark import versions
from tailrace.spark.versions import demand, demand_delta, demand_iceberg, release

PIPELINE = """
source: {connector: postgres, config: {database.hostname: 127.0.0.1, database.port: 1, database.user: u,
  database.dbname: d, topic.prefix: p}}
sink: {console: {}}
checkpoint: checkpoint
"""


@pytest.mark.parametrize(
    ("version", "expected"), [("4.2.1", (4, 2)), ("4.1.0.dev0", (4, 1)), ("4.3.0-SNAPSHOT", (4, 3)), ("10.0", (10, 0))]
)
def test_a_version_names_its_release(version: str, expected: tuple[int, int]) -> None:
    assert release(version) == expected


def test_a_version_without_a_release_is_named() -> None:
    with pytest.raises(TailraceError, match="the version of Spark is 'main', which names no release"):
        release("main")


@pytest.mark.parametrize("version", ["4.0.0", "4.1.4", "4.2.1", "4.3.0"])
def test_a_tried_spark_needs_no_word(version: str, caplog: pytest.LogCaptureFixture) -> None:
    demand(version)
    assert not caplog.records


def test_an_untried_spark_is_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    versions._warn.cache_clear()
    with caplog.at_level(logging.WARNING):
        demand("4.9.0")
        demand("4.9.0")
    (record,) = caplog.records
    assert "4.0, 4.1, 4.2, 4.3" in record.getMessage()
    assert "never on 4.9.0" in record.getMessage()


@pytest.mark.parametrize("version", ["3.5.9", "3.4.0", "2.4.8"])
def test_a_spark_without_python_sources_is_refused(version: str) -> None:
    with pytest.raises(TailraceError, match=f"Spark {version} has no streaming data sources in Python") as caught:
        demand(version)
    assert "4.0 or newer" in str(caught.value.remedy)


def test_a_spark_that_delta_is_not_made_for_is_refused_by_that_engine_alone() -> None:
    demand_delta("4.2.1")
    demand_delta("4.0.0")
    with pytest.raises(TailraceError, match=r"engine: spark: Delta for Spark does not run on Spark 4\.3\.0"):
        demand_delta("4.3.0")


def test_a_spark_that_iceberg_has_no_runtime_for_is_refused_by_that_engine_alone() -> None:
    assert demand_iceberg("4.0.5").startswith("org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:")
    assert demand_iceberg("4.1.4").startswith("org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:")
    for version in ("4.2.1", "4.3.0"):
        with pytest.raises(
            TailraceError, match=f"Iceberg has no runtime for Spark {version}, which MERGE needs"
        ) as caught:
            demand_iceberg(version)
        assert "use Spark 4.0 or 4.1" in str(caught.value.remedy)


@pytest.fixture
def without_spark(tmp_path: Path) -> str:
    """The start of a program whose Python has every package but PySpark."""
    site, linked = Path(pyspark.__file__).parents[1], tmp_path / "site"
    linked.mkdir()
    for each in site.iterdir():
        if not each.name.startswith("pyspark"):
            (linked / each.name).symlink_to(each)
    return f"import sys; sys.path = [{str(linked)!r} if each == {str(site)!r} else each for each in sys.path]\n"


@pytest.mark.parametrize("arguments", [["run"], ["check"], ["demo"]])
def test_a_command_without_spark_says_how_to_install_it(
    without_spark: str, arguments: list[str], tmp_path: Path
) -> None:
    (tmp_path / "pipeline.yaml").write_text(PIPELINE)
    pipeline = [] if arguments == ["demo"] else ["pipeline.yaml"]
    code = (
        f"{without_spark}sys.argv = ['tailrace', *{arguments + pipeline!r}]\nfrom tailrace.cli.main import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert "Error PySpark is not installed for" in done.stderr
    assert "pip install 'tailrace[spark]'" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "statement",
    [
        "import tailrace.spark.tables",
        "import pyspark_tailrace_postgres",
        "import tailrace.pipeline.runner",
        "import tailrace; tailrace.variants(None)",
        "from tailrace.sinks.kafka.sink import KafkaSink",
    ],
)
def test_an_import_that_needs_spark_says_how_to_install_it(without_spark: str, statement: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", without_spark + statement], capture_output=True, text=True, check=False
    )
    assert "tailrace.errors.TailraceError: PySpark is not installed" in done.stderr
    assert "pip install 'tailrace[spark]'" in done.stderr


def test_a_command_that_comes_to_spark_late_says_the_same(without_spark: str, tmp_path: Path) -> None:
    code = (
        f"{without_spark}from tailrace.cli import main\n"
        "main.app = lambda: __import__('tailrace.sinks.replica.sink')\nmain.main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "Error PySpark is not installed for" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("arguments", [["--help"], ["init", "--help"], ["--version"]])
def test_what_needs_no_spark_works_without_one(without_spark: str, arguments: list[str]) -> None:
    code = f"{without_spark}sys.argv = ['tailrace', *{arguments!r}]\nfrom tailrace.cli.main import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_timestamps_of_rows_are_in_utc_on_each_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """4.0 and 4.1 convert a schema by a function that has no time zone, as its timestamps are in UTC."""
    schema = StructType([StructField("at", TimestampType())])
    expected = pa.schema([("at", pa.timestamp("us", "UTC"))])
    assert versions.to_arrow_schema(schema) == expected
    monkeypatch.setattr(pandas_types, "to_arrow_schema", lambda of: expected if of is schema else None)
    assert versions.to_arrow_schema(schema) == expected
