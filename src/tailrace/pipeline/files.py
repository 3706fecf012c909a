"""Reads and writes small files on any file system that Spark writes to: local, or through Java's Hadoop classes."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from tailrace.errors import ConfigError, TailraceError
from tailrace.spark.java_errors import summary

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")

# File systems on which only one of two writers can create a file, and all see it at once.
_ATOMIC = ("hdfs", "viewfs")
_SETTLE_SECONDS = 1.0


def checkpoint_file(session: SparkSession, checkpoint: str, name: str) -> LocalFile | HadoopFile:
    """A file in a checkpoint's folder, where Spark itself looks for the folder. Raises ConfigError."""
    file = HadoopFile(session, checkpoint, name)
    if file.scheme != "file":
        return file
    parts = urlsplit(checkpoint)
    return LocalFile(Path(parts.path if parts.scheme == "file" else checkpoint) / name)


class LocalFile:
    """A file of this machine, which can be read and removed without Java. The methods raise ConfigError."""

    settle_seconds = 0.0

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def where(self) -> str:
        """Its path."""
        return str(self._path)

    def read(self) -> str | None:
        """The content, None if there is no such file."""
        try:
            return self._translated(lambda: self._path.read_text(encoding="utf-8", errors="replace"))
        except _NotThereError:
            return None

    def create(self, content: str) -> bool:
        """Write a new file; False if there is one."""

        def create() -> None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("x", encoding="utf-8") as stream:
                stream.write(content)

        try:
            self._translated(create)
        except _ThereError:
            return False
        return True

    def write(self, content: str) -> None:
        """Write the file, whether there is one or not."""
        # Of this thread alone: a session may start two queries over one checkpoint at once.
        draft = self._path.with_name(f".{self._path.name}.{os.getpid()}.{threading.get_ident()}")

        def write() -> None:
            try:
                draft.write_text(content, encoding="utf-8")
                draft.replace(self._path)
            except OSError:
                draft.unlink(missing_ok=True)
                raise

        self._translated(write)

    def overwrite(self, content: str) -> bool:
        """Write into the space that the file has, as a full disk has no other; False if that cannot be done.

        Who is killed meanwhile leaves a damaged file: only for what may be lost.
        """
        try:
            with self._path.open("r+", encoding="utf-8") as stream:
                stream.write(content)
                stream.truncate()
        except OSError:
            return False
        return True

    def delete(self) -> None:
        """Remove the file."""
        with suppress(_NotThereError):
            self._translated(self._path.unlink)

    def _translated(self, question: Callable[[], T]) -> T:
        try:
            return question()
        except FileNotFoundError as error:
            raise _NotThereError("there is no such file", where=self.where) from error
        except FileExistsError as error:
            raise _ThereError("the file exists", where=self.where) from error
        except OSError as error:
            raise ConfigError(
                f"the file cannot be used: {error.strerror}",
                where=self.where,
                remedy="set `checkpoint` to a folder that this user may read and write, on a disk with free space",
            ) from error


class HadoopFile:
    """One small file, read and written as a whole. Every method raises TailraceError for what Java refuses."""

    def __init__(self, session: SparkSession, folder: str, name: str) -> None:
        jvm: Any = session.sparkContext._jvm
        self._name = name
        self._folder = folder
        self._path = jvm.org.apache.hadoop.fs.Path(folder, name)
        conf = session._jsparkSession.sessionState().newHadoopConf()
        # An instance of its own: the files have no checksums, which are a second file that is written later.
        self._system = self._translated(
            lambda: jvm.org.apache.hadoop.fs.FileSystem.newInstance(self._path.toUri(), conf)
        )
        self._system.setWriteChecksum(False)
        self._system.setVerifyChecksum(False)

    @property
    def where(self) -> str:
        """The path as it was given."""
        return f"{self._folder}/{self._name}"

    @property
    def scheme(self) -> str:
        """The file system's, as in its URLs."""
        return str(self._system.getUri().getScheme())

    @property
    def settle_seconds(self) -> float:
        """How long another writer's `create` at the same moment may stay unseen; 0 where only one can succeed."""
        return 0.0 if self.scheme in _ATOMIC else _SETTLE_SECONDS

    def read(self) -> str | None:
        """The content, None if there is no such file."""

        def read() -> str:
            stream = self._system.open(self._path)
            try:
                return bytes(stream.readAllBytes()).decode(errors="replace")
            finally:
                stream.close()

        try:
            return self._translated(read)
        except _NotThereError:
            return None

    def create(self, content: str) -> bool:
        """Write a new file; False if there is one."""
        try:
            self._write(content, overwrite=False)
        except _ThereError:
            return False
        return True

    def write(self, content: str) -> None:
        """Write the file, whether there is one or not."""
        self._write(content, overwrite=True)

    def delete(self) -> None:
        """Remove the file."""
        self._translated(lambda: self._system.delete(self._path, False))

    def _write(self, content: str, *, overwrite: bool) -> None:
        def write() -> None:
            stream = self._system.create(self._path, overwrite)
            try:
                stream.write(bytearray(content.encode()))
            finally:
                stream.close()

        self._translated(write)

    def _translated(self, question: Callable[[], T]) -> T:
        from py4j.protocol import Py4JError, Py4JJavaError

        try:
            return question()
        except Py4JJavaError as error:
            kind = str(error.java_exception.getClass().getSimpleName())
            if kind in ("FileAlreadyExistsException", "FileNotFoundException"):
                raise (_ThereError if kind.startswith("FileA") else _NotThereError)(kind, where=self.where) from error
            raise ConfigError(
                f"Spark cannot use the file system: {summary(error)}",
                where=self.where,
                remedy="set `checkpoint` to a place that Spark may read and write; its jars and keys go under `spark`",
            ) from error
        except (Py4JError, ConnectionError) as error:
            raise TailraceError("Spark's Java process has ended", where=self.where) from error


class _ThereError(TailraceError):
    """The file exists already."""


class _NotThereError(TailraceError):
    """There is no such file."""
