"""`tailrace demo`: a real database with live traffic and a replica that follows it, compared at the end."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import KW_ONLY, dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from tailrace.cli import demo_shop
from tailrace.cli.demo_screen import Screen
from tailrace.cli.demo_shop import DemoShop
from tailrace.cli.stop import StopRequest, stop_on_signals
from tailrace.errors import ConfigError, TailraceError
from tailrace.sinks.replica.roots import DATABASE_FORMAT, Format

if TYPE_CHECKING:
    from tailrace.connectors.ports import Admin, Position
    from tailrace.model.change import ChangeBatch
    from tailrace.pipeline.definition import Definition
    from tailrace.pipeline.runner import Run
    from tailrace.sinks.console import ConsoleEvent

TRAFFIC_SECONDS = 20.0  # guessed
PAUSE_SECONDS = 0.03  # guessed
CATCH_UP_SECONDS = 120.0  # guessed
DELTA = "delta"


def _catalog(folder: Path) -> dict[str, Any]:
    """The settings of Iceberg tables in a folder, which has a catalog of SQLite as well."""
    folder.mkdir(parents=True, exist_ok=True)
    catalog = {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}"}
    return {"format": "iceberg", "namespace": "shop", "catalog": catalog}


def _database(folder: Path) -> dict[str, Any]:
    """The settings of tables in a database of a server of its own, which ends with this process."""
    from tailrace.connectors import registry

    start = registry.DEFAULT.demo
    assert start is not None
    server = registry.imported(start)().start()
    server.create_database(folder.name)
    return {"format": DATABASE_FORMAT, "url": server.url(folder.name), "namespace": "shop"}


# The settings of a replica in a folder, by its format.
LAKES: dict[str, Callable[[Path], dict[str, Any]]] = {
    DELTA: lambda folder: {"path": str(folder)},
    "iceberg": _catalog,
    DATABASE_FORMAT: _database,
}
# The JVM's second compiler costs more than it saves in the first minute: 30 s of CPU instead of 17, measured.
QUICK_START = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}


def command(
    keep: Annotated[bool, typer.Option("--keep", help="Run until Ctrl-C.")] = False,
    lake: Annotated[
        str, typer.Option("--sink", help=f"The tables of the replica: {' or '.join(get_args(Format))}.")
    ] = DELTA,
) -> None:
    """Run a demo of a minute. It has an embedded database with traffic, a replica that follows it, and a comparison."""
    from tailrace.connectors import registry
    from tailrace.pipeline.session import check_java

    check_java()
    entry = registry.DEFAULT
    assert entry.demo is not None
    show(entry.product, registry.imported(entry.demo), demo_shop.TableShop, keep=keep, lake=lake)


def show(
    product: str,
    start: Callable[[], AbstractContextManager[Any]],
    shop_of: Callable[[Any], DemoShop],
    *,
    keep: bool = False,
    lake: str = DELTA,
) -> None:
    """Run the demo on the server that `start` starts. Raises TailraceError if replica and source differ."""
    if lake not in LAKES:
        raise ConfigError(f"is {lake!r}", where="--sink", remedy=f"choose {' or '.join(LAKES)}")
    screen = Screen()
    with tempfile.TemporaryDirectory(prefix="tailrace-demo-") as folder:
        screen.say(f"Starting {product}")
        with start() as server:
            shop = shop_of(server)
            shop.load()
            screen.say(f"Its database {demo_shop.DATABASE!r} has {len(shop.tables)} tables and a history")
            unequal = Demo(shop, Path(folder), screen, lake=lake).run(None if keep else TRAFFIC_SECONDS)
    if unequal:
        raise TailraceError(f"replica and source differ in {', '.join(unequal)}")


def arguments(given: Sequence[str]) -> dict[str, Any]:
    """The arguments of `show` from those of a command line."""
    lake = given[given.index("--sink") + 1] if "--sink" in given else DELTA
    return {"keep": "--keep" in given, "lake": lake}


@dataclass
class Demo:
    """One run of the demo on a shop, in a Spark session of its own unless one is given."""

    shop: DemoShop
    folder: Path
    screen: Screen
    session: Any = None
    _: KW_ONLY
    lake: str = DELTA
    definition: Definition = field(init=False)
    admin: Admin = field(init=False)

    def __post_init__(self) -> None:
        from tailrace.connectors import registry
        from tailrace.pipeline.definition import from_content

        entry = registry.of_url(self.shop.url())
        source = entry.load().new_source(self.shop.url())
        content: dict[str, Any] = {
            "name": "demo",
            "source": {"connector": entry.name, "config": {**source.properties, **source.secrets}},
            "sink": {"replica": LAKES[self.lake](self.folder / "replica")},
            "trigger": "500ms",
            "checkpoint": "checkpoint",
            "spark": {"spark.master": "local[2]", "spark.driver.memory": "1g", **QUICK_START},
        }
        self.definition = from_content(content, base=self.folder, where="demo")
        self.admin = self.definition.admin()

    def run(self, seconds: float | None) -> list[str]:
        """Runs pipeline and traffic for `seconds`, or until asked to stop; returns the tables that are not equal."""
        from tailrace.pipeline.runner import Pipeline
        from tailrace.pipeline.target import ReplicaOutput

        assert self.definition.sink.replica is not None
        target = ReplicaOutput(self.definition.sink.replica, watch=self._watch)
        self.screen.say(f"Starting the pipeline into {target.target.root}")
        running = Pipeline(self.definition, self.session, target).start()
        with stop_on_signals() as asked:
            self._follow(running, asked, seconds)
            self._catch_up(running)
        self.screen.say("It has; stopping the pipeline")
        running.stop()
        if asked and seconds is not None:
            raise typer.Exit(asked.code)
        return self._compare()

    def _follow(self, running: Run, asked: StopRequest, seconds: float | None) -> None:
        """Shows the snapshot, then traffic with the replica behind it."""
        with self.screen.live():
            while not asked and self._status().phase != "stream":
                self._tick(running)
            self.screen.say("The snapshot is in the replica; the shop opens" + ("" if seconds else ", until Ctrl-C"))
            end = None if seconds is None else time.monotonic() + seconds
            with self._traffic():
                while not asked and (end is None or time.monotonic() < end):
                    self._tick(running)

    def _tick(self, running: Run) -> None:
        if running.await_(0.5):
            raise TailraceError("the pipeline ended on its own")
        self.screen.show(self._status())

    def _status(self) -> Any:
        from tailrace.operate.status import assess
        from tailrace.pipeline.checkpoint import position
        from tailrace.sinks.replica.target import row_counts

        checkpoint, target = position(self.definition.checkpoint), self.definition.sink.replica
        assert target is not None
        status = assess("demo", checkpoint, self.admin.state(checkpoint.pipeline), self._position(), time.time())
        status.tables.update(row_counts(target.root, target.options))
        return status

    def _catch_up(self, running: Run) -> None:
        """Waits until the replica has everything the source had when the traffic ended."""
        self.screen.say("The shop is closed; the replica catches up")
        goal = self.admin.state().log_end
        deadline = time.monotonic() + CATCH_UP_SECONDS
        while (position := self._position()) is None or position < goal:
            if running.await_(0.2) or time.monotonic() > deadline:
                reached = "nothing" if position is None else position.to_text()
                raise TailraceError(f"the replica has {reached} of the log up to {goal.to_text()} and did not catch up")

    def _position(self) -> Position | None:
        """The position up to which the replica has the log."""
        from tailrace.pipeline.checkpoint import position

        done = position(self.definition.checkpoint).committed
        return None if done is None else self.admin.position(done.offset)

    @contextmanager
    def _traffic(self) -> Iterator[None]:
        """Traffic on a thread and a connection of its own."""
        closed = threading.Event()
        failures: list[Exception] = []

        def trade() -> None:
            try:
                with self.shop.open() as step:
                    while not closed.wait(PAUSE_SECONDS):
                        step()
            except Exception as error:
                failures.append(error)

        thread = threading.Thread(target=trade, name="shop")
        thread.start()
        try:
            yield
        finally:
            closed.set()
            thread.join()
        if failures:
            raise TailraceError("the shop's traffic failed") from failures[0]

    def _watch(self, batch: ChangeBatch) -> None:
        """Puts the batch's last change on the screen; no more, as nobody reads hundreds a second."""
        self.screen.event(newest(batch))

    def _compare(self) -> list[str]:
        """Compares every table row by row and says so; returns the tables that differ."""
        self.screen.say("Comparing replica and source, row by row")
        assert self.definition.sink.replica is not None
        target = self.definition.sink.replica
        compared = self.shop.compared(target.root, target.options)
        return [table for table, source, replica in compared if not self.screen.compared(table, source, replica)]


def newest(batch: ChangeBatch) -> ConsoleEvent:
    """The last change of a batch, for reading: values as a table shows them, not as Debezium encodes them."""
    from tailrace.model.native import native_rows
    from tailrace.sinks.console import ConsoleEvent

    rows = batch.rows.slice(len(batch) - 1)
    (last,) = rows.to_pylist()
    before, after = (native_rows(batch.table, rows.column(name))[0].as_py() or {} for name in ("before", "after"))
    unchanged = last.get("unchanged") or {}
    return ConsoleEvent(
        ts=datetime.fromtimestamp(last["ts_us"] / 1e6, timezone.utc),
        op=last["op"],
        topic=f"shop.{batch.table.id}",
        key={name: (after or before)[name] for name in batch.table.key if after or before},
        before=before,
        after={name: value for name, value in after.items() if not unchanged.get(name)},
    )
