"""The stand-in for Db2: Apache Derby behind a filter of its protocol, with a capture program that is imitated."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tailrace.errors import TailraceError
from tailrace.override import override
from tailrace.testing.jars import java, resolve_jars
from tailrace.testing.process import ServerProcess, free_port
from tests.servers.db2.client import Db2Client
from tests.servers.db2.patch_metadata import patch

if TYPE_CHECKING:
    from typing_extensions import Self

_HERE = Path(__file__).parent
# The newest line of Derby that runs on Java 17, and a compiler for machines without a JDK.
_DERBY = [
    f"org.apache.derby:{name}:10.16.1.1" for name in ("derby", "derbynet", "derbyshared", "derbytools", "derbyclient")
]
_COMPILER = ["org.eclipse.jdt:ecj:3.38.0"]
_START_SECONDS = 60
DATABASE, USER, PASSWORD = "TESTDB", "db2inst1", "db2inst1"


class Db2(Db2Client, ServerProcess):
    """The stand-in on a free port of 127.0.0.1, started by `start()` or `with`; its data is temporary.

    `interval` is the time in seconds between two turns of the capture program, `password` that of the owner of all
    tables, `users` are more users with passwords, who may do nothing. With `reorg` some alterations leave tables in
    reorg pending.
    """

    def __init__(
        self,
        *,
        interval: float = 0.05,
        password: str = PASSWORD,
        users: dict[str, str] | None = None,
        database: str = DATABASE,
        reorg: bool = False,
    ) -> None:
        Db2Client.__init__(self, "127.0.0.1", free_port(), database, USER, password)
        ServerProcess.__init__(self)
        self._derby_port = free_port()
        self._interval, self._users = interval, {USER: password, **(users or {})}
        self._reorg = reorg
        self._home = self._folder("tailrace-db2-")
        self._filter: subprocess.Popen[bytes] | None = None

    @property
    @override
    def log(self) -> Path:
        return self._home / "derby.log"

    @override
    def start(self) -> Self:
        if self.running:
            return self
        jars = resolve_jars(_DERBY, transitive=False)
        path = os.pathsep.join(map(str, (*_prepared(jars), *jars)))
        settings = {
            "asncdc.interval.ms": str(round(self._interval * 1000)),
            "derby.connection.requireAuthentication": "true",
            "derby.authentication.provider": "BUILTIN",
            "derby.database.sqlAuthorization": "true",
            "derby.locks.deadlockTimeout": "1",
            "derby.system.durability": "test",
            # Under load a thread finds entries of the cache that another one has emptied.
            "derby.language.statementCacheSize": "0",
            "user.timezone": "UTC",
            "derby.stream.error.file": str(self._home / "errors.log"),
            **{f"derby.user.{name}": password for name, password in self._users.items()},
        }
        listen = ("start", "-h", self.host, "-p", str(self._derby_port), "-noSecurityManager")
        # A second compiler would be busy all the time: each statement is a class of its own.
        lean = ("-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
        command = [java(), *lean, *(f"-D{name}={value}" for name, value in settings.items()), "-cp", path]
        seen = self.log.stat().st_size if self.log.exists() else 0
        self._launch([*command, "org.apache.derby.drda.NetworkServerControl", *listen], {"cwd": self._home})
        self._await(lambda: b"ready to accept connections" in self.log.read_bytes()[seen:])
        if not (self._home / self.database).exists():
            self._create(path)
        self._start_filter()
        self.services("start")
        return self

    def _create(self, path: str) -> None:
        place = f"jdbc:derby://127.0.0.1:{self._derby_port}/{self.database};user={self.user};create=true"
        statements = (_HERE / "derby" / "schema.sql").read_text(encoding="utf-8")
        script = f"connect '{place};password={self.password}';\n{statements}"
        command = [java(), "-Xmx128m", "-cp", path, "org.apache.derby.tools.ij"]
        done = subprocess.run(command, input=script, capture_output=True, text=True, check=False)
        if "ERROR " in done.stdout:
            raise TailraceError(f"the control tables could not be made:\n{done.stdout[-2000:]}", where=str(self._home))

    def _start_filter(self) -> None:
        ports = ["--listen", str(self.port), "--server", str(self._derby_port), "--database", self.database]
        ports += ["--reorg"] if self._reorg else []
        log = (self._home / "filter.log").open("wb")
        with log:
            self._filter = subprocess.Popen(
                [sys.executable, str(_HERE / "filter" / "drda.py"), *ports],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._await(lambda: b"listening" in (self._home / "filter.log").read_bytes())

    def _await(self, condition: Any) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while not condition():
            if not self.running or time.monotonic() > deadline:
                self.kill()
                raise TailraceError(
                    f"Derby did not start. The end of its log:\n{self._log_tail()}", where=str(self.log)
                )
            time.sleep(0.02)

    def _gone(self) -> None:
        if getattr(self, "_filter", None) is not None:
            assert self._filter is not None
            self._filter.kill()
            self._filter.wait()
            self._filter = None
        super()._gone()


def _prepared(jars: list[Path]) -> tuple[Path, Path]:
    """Folders for the class path: two of Derby's files as `patch_metadata.py` changes them, and compiled classes."""
    sources = sorted((_HERE / "derby" / "asncdc").glob("*.java"))
    content = b"".join(file.read_bytes() for file in (*sources, _HERE / "patch_metadata.py"))
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tailrace" / "db2"
    folder = cache / hashlib.sha256(content).hexdigest()[:12]
    if not folder.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache, prefix="compile-") as work:
            made = Path(work) / "made"
            patch(next(jar for jar in jars if jar.name.startswith("derby-10")), made / "patch")
            _compile(sources, jars, made / "classes")
            if not folder.exists():  # another process may have been faster
                made.rename(folder)
    return folder / "patch", folder / "classes"


def _compile(sources: list[Path], jars: list[Path], target: Path) -> None:
    (compiler,) = resolve_jars(_COMPILER, transitive=False)
    path = os.pathsep.join(map(str, jars))
    command = [java(), "-jar", str(compiler), "-17", "-nowarn", "-cp", path, "-d", str(target), *map(str, sources)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise TailraceError(f"the capture program could not be compiled:\n{done.stdout}{done.stderr}")
