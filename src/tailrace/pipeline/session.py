"""Creates the local SparkSession of a pipeline: quiet, tuned for small batches, with Java checked."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from tailrace.connectors.private_files import open_own_log
from tailrace.errors import ConfigError, TailraceError
from tailrace.override import override
from tailrace.pipeline.not_started import starting
from tailrace.pipeline.scratch import java_options as scratch_options
from tailrace.pipeline.scratch import scratch_folder
from tailrace.pipeline.spark_start import SWITCH, class_archive, local_files, worker_python

if TYPE_CHECKING:
    from pyspark import SparkConf
    from pyspark.sql import SparkSession

LOWEST_JAVA = 17
_CHECKPOINT_FILES = "spark.sql.streaming.checkpointFileManagerClass"

SETTINGS = {
    "spark.master": "local[*]",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    # Spark's own 1g is too little for a row of 200 MB: a sink of text holds a few copies of it.
    "spark.driver.memory": "2g",
    # What the JVM does beside the program is done on the cores that read. G1's part costs a tenth of the rows a second
    # on two cores.
    # Arrow checks the bounds and the null of each value that Spark takes, a fifth of the rows a second; Spark asks for
    # neither a row that is not there nor the value of a null.
    "spark.driver.extraJavaOptions": (
        "-XX:+UseParallelGC -Darrow.enable_unsafe_memory_access=true -Darrow.enable_null_check_for_get=false"
    ),
    # Rows from Python come by a Unix socket: they need neither packets nor a secret.
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.sql.shuffle.partitions": str(max(2, os.cpu_count() or 2)),
    # Renaming without a checksum file (see _CHECKPOINT_FILES) takes a micro-batch's fixed cost from 170 to 110 ms.
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    # A Python worker keeps the replication connection from batch to batch: reuse it, and never read a split twice.
    "spark.python.worker.reuse": "true",
    "spark.speculation": "false",
}

# The second compiler waits twenty times as long as by default: it compiles what is done for each row, not what a start
# does once. Where Java only hands rows on, that does not pay at all: without it a micro-batch takes a tenth less.
_COMPILED_LATE = (
    "-XX:Tier4InvocationThreshold=100000 -XX:Tier4MinInvocationThreshold=12000 "
    "-XX:Tier4CompileThreshold=300000 -XX:Tier4BackEdgeThreshold=800000"
)
_COMPILED_ONCE = "-XX:TieredStopAtLevel=1"


def local_session(name: str, log: Path, settings: Mapping[str, object], *, rows_in_java: bool = True) -> SparkSession:
    """A SparkSession in this process's own JVM; what Java and Spark print goes to the file `log`.

    `settings` are Spark properties that win over `SETTINGS`; without `rows_in_java` Java has no work for each row.
    Raises TailraceError if there is no usable Java or Spark, if the log cannot be written, or if Spark does not start.
    """
    from tailrace.spark.versions import demand, streaming_class

    demand()
    java, version = check_java()
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    conf = SparkConf(loadDefaults=False)
    conf.set(_CHECKPOINT_FILES, streaming_class("checkpointing", "FileSystemBasedCheckpointFileManager"))
    for key, value in {**SETTINGS, "spark.app.name": name, **settings}.items():
        conf.set(key, str(value).lower() if isinstance(value, bool) else str(value))
    scratch = scratch_folder()
    conf.setIfMissing("spark.local.dir", str(scratch))
    is_quick = _is_quick(conf)
    # Python of PATH would miss our packages.
    os.environ["PYSPARK_PYTHON"] = worker_python.program(conf.get("spark.master") or "") if is_quick else sys.executable
    options = conf.get("spark.driver.extraJavaOptions") or ""
    if "spark.driver.extraJavaOptions" not in settings:
        options += f" {_COMPILED_LATE if rows_in_java else _COMPILED_ONCE}"
    if "java.io.tmpdir" not in options:
        options += scratch_options(scratch)
    if is_quick and "ArchiveFile" not in options and "ArchiveClassesAtExit" not in options:
        options += class_archive.java_options(class_archive.place(java, version))
    conf.set("spark.driver.extraJavaOptions", options)
    with _opened(log) as output, starting(log, settings):
        arguments = _Arguments(stdout=output, stderr=output)
        gateway = launch_gateway(conf, arguments)  # type: ignore[no-untyped-call]
        context = SparkContext(conf=conf, gateway=gateway)
        if is_quick:
            local_files.write_plainly(context)
        return SparkSession(context)


def is_alive(session: SparkSession) -> bool:
    """Whether the Java process of a local session runs."""
    gateway: Any = session.sparkContext._gateway
    return gateway.proc.poll() is None


def refuse_unsafe(session: SparkSession) -> None:
    """Raises ConfigError for Spark settings under which a position could be acknowledged before its rows are safe."""
    if session.sparkContext.getConf().get("spark.speculation", "false").lower() == "true":
        raise ConfigError(
            "speculative execution would read the same part of the log twice at the same time",
            where="spark.speculation",
            remedy="Set spark.speculation to false.",
        )


def without_pace_warnings(session: SparkSession) -> None:
    """Turn off Spark's warning that a micro-batch took longer than the trigger's interval.

    Where the source itself pauses between micro-batches, that interval says how soon a snapshot is noticed.
    """
    from tailrace.spark.versions import streaming_class

    jvm: Any = session.sparkContext._jvm
    log4j = jvm.org.apache.logging.log4j
    log4j.core.config.Configurator.setLevel(streaming_class("runtime", "ProcessingTimeExecutor"), log4j.Level.ERROR)


def _is_quick(conf: SparkConf) -> bool:
    """Whether Spark is started in our ways. Raises ConfigError for a switch that is neither on nor off."""
    text = (conf.get(SWITCH) or "true").lower()
    if text not in ("true", "false"):
        raise ConfigError(
            f"{text!r} is neither true nor false", where=SWITCH, remedy="set it to false, or leave it out"
        )
    return text == "true"


class _Arguments(dict[str, Any]):
    """Popen's arguments for Java. PySpark sets `preexec_fn`, by which Java ignores Ctrl-C; here SIGTERM as well.

    A service manager sends SIGTERM to all processes at once. Java then has to live until its query is stopped.
    """

    @override
    def __setitem__(self, name: str, value: Any) -> None:
        if name != "preexec_fn":
            return super().__setitem__(name, value)

        def ignore_signals() -> None:
            value()
            signal.signal(signal.SIGTERM, signal.SIG_IGN)

        super().__setitem__(name, ignore_signals)


def _opened(log: Path) -> BinaryIO:
    try:
        log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        return os.fdopen(open_own_log(log), "ab")
    except OSError as error:
        remedy = (
            "free space there and see that this user may write, or choose another place "
            "(`checkpoint` of the pipeline; where that is a URL, TMPDIR)"
        )
        raise TailraceError(f"the log cannot be written: {error.strerror}", where=str(log), remedy=remedy) from error


def check_java() -> tuple[str, str]:
    """The Java that Spark runs on, and what it prints of its version.

    Raises TailraceError, saying what to install, unless there is one.
    """
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    printed = _printed_version(java) if java else ""
    match = re.search(r'version "(?:1\.)?(\d+)', printed)
    version = int(match[1]) if match else None
    if java is not None and version is not None and version >= LOWEST_JAVA:
        return java, printed
    what = "Spark needs Java" if version is None else f"Spark needs a newer Java than {version}, which {java} is"
    if home and version is None:
        raise TailraceError(
            f"JAVA_HOME is {home}, and {java} cannot be run",
            remedy=f"set JAVA_HOME to the folder of a Java {LOWEST_JAVA} or newer, or unset it to search PATH",
        )
    remedy = (
        f"Install Java {LOWEST_JAVA} or newer (Debian/Ubuntu: `apt install openjdk-{LOWEST_JAVA}-jre-headless`, "
        f"macOS: `brew install openjdk@{LOWEST_JAVA}`), or set JAVA_HOME to one."
    )
    raise TailraceError(what, remedy=remedy)


def _printed_version(java: str) -> str:
    """What that java prints of its version; nothing if it cannot be run."""
    try:
        return subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30, check=True).stderr
    except (OSError, subprocess.SubprocessError):
        return ""
