"""A Spark that does not start is a sentence: what, why, which setting, and what to do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from py4j.protocol import Py4JNetworkError
from pyspark.errors import PySparkRuntimeError

from tailrace.errors import TailraceError
from tailrace.pipeline.not_started import not_started, starting

EXITED = PySparkRuntimeError(errorClass="JAVA_GATEWAY_EXITED", messageParameters={})
USUAL = """WARNING: Using incubator modules: jdk.incubator.vector
OpenJDK 64-Bit Server VM warning: Sharing is only supported for boot loader classes
Using Spark's default log4j profile: org/apache/spark/log4j2-defaults.properties
26/11/26 16:28:51 WARN NativeCodeLoader: Unable to load native-hadoop library for your platform
"""
NO_VM = "Error: Could not create the Java Virtual Machine.\nError: A fatal exception has occurred. Program will exit.\n"


def failed(log: Path, printed: str, error: Exception, **settings: object) -> TailraceError:
    """What is said of a start that prints and fails, in a log with lines of an earlier run."""
    log.write_text("Invalid maximum heap size: -Xmx9 of another run\n")
    given = {name.replace("__", "."): value for name, value in settings.items()}

    def start() -> None:
        with starting(log, given):
            with log.open("a") as stream:
                stream.write(printed)
            raise error

    with pytest.raises(TailraceError) as caught:
        start()
    return caught.value


def test_what_java_printed_is_the_reason(tmp_path: Path) -> None:
    log = tmp_path / "p.log"
    found = failed(log, f"{USUAL}Invalid maximum heap size: -Xmx2 gigs\n{NO_VM}", EXITED)
    assert str(found) == (
        "spark.driver.memory: Spark did not start: Invalid maximum heap size: -Xmx2 gigs\n"
        "  Remedy: set it below `spark` to a number with its unit, such as 2g or 512m, and less than the machine has; "
        f"Spark's log is {log}"
    )
    nothing = "Error occurred during initialization of VM\nCould not reserve enough space for 943KB object heap\n"
    assert "Could not reserve enough" in failed(log, nothing, EXITED, spark__driver__memory="900000g").what
    thrown = 'Exception in thread "main" java.lang.IllegalArgumentException: no such place: "somewhere"\n\tat x\n'
    found = failed(log, thrown, EXITED, spark__speculation=True, spark__local__dir="somewhere")
    assert (found.where, found.what) == (
        "spark.local.dir",
        'Spark did not start: java.lang.IllegalArgumentException: no such place: "somewhere"',
    )


@pytest.mark.parametrize("error", [EXITED, ConnectionRefusedError(111, "refused"), Py4JNetworkError("empty answer")])
def test_java_that_was_killed_has_printed_nothing(tmp_path: Path, error: Exception) -> None:
    found = failed(tmp_path / "p.log", USUAL, error)
    assert found.where == str(tmp_path / "p.log")
    assert "its Java process ended, and says nothing of it" in found.what
    assert "Java may have been killed" in (found.remedy or "")


def test_a_reason_without_a_setting_points_to_the_log(tmp_path: Path) -> None:
    found = not_started("java.net.BindException: no port", tmp_path, {"spark.ui.port": 1})
    assert found.where == str(tmp_path)
    assert f"see the end of {tmp_path}" in (found.remedy or "")
    missing = FileNotFoundError(2, "No such file or directory", "/none/bin/spark-submit")
    assert "No such file or directory: '/none/bin/spark-submit'" in failed(tmp_path / "p.log", "", missing).what


@pytest.mark.server
def test_a_wrong_master_is_named(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom pathlib import Path\nfrom tailrace.pipeline.session import local_session\n"
        "try:\n    local_session('p', Path(sys.argv[1]), {'spark.master': 'local[x'})\n"
        "except Exception as error:\n    print(type(error).__name__, error)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "p.log")], capture_output=True, text=True)
    assert done.stdout.startswith(
        "TailraceError spark.master: Spark did not start: org.apache.spark.SparkException: Could not parse Master URL: "
        "'local[x'\n  Remedy: set it below `spark` to local[*]"
    ), done.stderr
