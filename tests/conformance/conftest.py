"""The conformance suite runs every test on every Subject; a test is skipped only if the subject says why it must be."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.conformance.db2 import Db2Subject
from tests.conformance.folder import FolderSubject, install
from tests.conformance.lakes import LAKES, TestedLake
from tests.conformance.mongodb import MongoSubject
from tests.conformance.postgres import PostgresSubject
from tests.conformance.sqlserver import SqlServerSubject
from tests.conformance.subject import Source, Subject

SUBJECTS: list[Subject] = [PostgresSubject(), MongoSubject(), SqlServerSubject(), FolderSubject()]
if find_spec("ibm_db"):  # IBM has no driver for Linux on other processors than x86_64
    SUBJECTS.append(Db2Subject())
# At collection, when no Spark runs yet.
install()
HERE = Path(__file__).parent
# What the default suite tests with each format of replicas, on one database; the rest is in the long one.
SHORT = ("a_replica_has_the_rows_of_its_source", "a_truncate_empties_a_replica")
# What the default suite tries with one format of replicas.
IN_LONGER_TESTS = ("a_pipeline_killed_under_load_resumes",)


@pytest.fixture(scope="session", params=SUBJECTS, ids=lambda subject: subject.connector)
def subject(request: pytest.FixtureRequest) -> Subject:
    """A database whose server runs."""
    subject: Subject = request.param
    subject.start(request)
    return subject


@pytest.fixture(scope="session", params=LAKES, ids=lambda lake: lake.name)
def lake(request: pytest.FixtureRequest) -> TestedLake:
    """A format of replicas."""
    found: TestedLake = request.param
    return found


@pytest.fixture(scope="module")
def source(subject: Subject) -> Iterator[Source]:
    """An empty database that the tests of a module share."""
    with subject.source() as source:
        yield source


@pytest.fixture(scope="module")
def folder(subject: Subject, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that the tests of a module share."""
    return tmp_path_factory.mktemp(subject.connector)


def behaviours(item: pytest.Item) -> tuple[str, str]:
    """The name of a test without `test_`, alone and with its parameters but for the connector."""
    assert isinstance(item, pytest.Function)
    name = item.originalname.removeprefix("test_")
    own = {*_connectors(), *(lake.name for lake in LAKES)}
    parameters = [text for text in item.name.partition("[")[2].rstrip("]").split("-") if text not in own]
    return name, f"{name}[{'-'.join(parameters)}]" if parameters else name


def is_within_another(item: pytest.Item) -> bool:
    """Whether `make crash` tries in a longer test, with the same pipeline, what this one does."""
    if HERE not in item.path.parents:
        return False
    lake = item.callspec.params.get("lake")  # type: ignore[attr-defined]
    return behaviours(item)[0] in IN_LONGER_TESTS and lake is not LAKES[0]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip what a subject says it lacks; what it says must be the name of a behaviour."""
    others = [item for item in items if is_within_another(item)]
    config.hook.pytest_deselected(items=others)
    items[:] = [item for item in items if not is_within_another(item)]
    own = [item for item in items if HERE in item.path.parents]
    for item in own:
        subject: Subject = item.callspec.params["subject"]  # type: ignore[attr-defined]
        if item.path.name == "test_killed.py" and not subject.is_killed:
            item.add_marker(pytest.mark.crash)
        lake: TestedLake = item.callspec.params.get("lake", LAKES[0])  # type: ignore[attr-defined]
        if lake is not LAKES[0] and (subject is not SUBJECTS[0] or behaviours(item)[0] not in SHORT):
            item.add_marker(pytest.mark.long)
        for name in behaviours(item):
            if name in subject.long:
                item.add_marker(pytest.mark.long)
            if name in subject.cannot:
                item.add_marker(pytest.mark.skip(f"{subject.connector}: {subject.cannot[name]}"))
                break
    known = {name for item in own for name in behaviours(item)}
    whole = {file.name for file in HERE.glob("test_*.py")} <= {item.path.name for item in own}
    unknown = [
        f"{each.connector}: {name}" for each in SUBJECTS for name in (*each.cannot, *each.long) if name not in known
    ]
    if whole and unknown:
        raise pytest.UsageError(f"a subject of the conformance suite names behaviours that do not exist: {unknown}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail a test that skips itself: only a subject's `cannot` may skip one."""
    report = yield
    if report.skipped and HERE in item.path.parents and not any(item.iter_markers("skip")):
        report.outcome, report.longrepr = "failed", f"only a subject's `cannot` skips a behaviour: {report.longrepr}"
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what the databases cannot have."""
    skipped = [report for report in terminalreporter.stats.get("skipped", ()) if HERE.name in report.nodeid.split("/")]
    if skipped:
        terminalreporter.section("behaviours that a database cannot have")
        for report in sorted(skipped, key=lambda report: str(report.nodeid)):
            behaviour = report.nodeid.rpartition("::")[2].removeprefix("test_")
            terminalreporter.line(f"{behaviour}: {report.longrepr[2].removeprefix('Skipped: ')}")


def _connectors() -> set[str]:
    return {subject.connector for subject in SUBJECTS}
