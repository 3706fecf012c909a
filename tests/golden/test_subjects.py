"""The how-to of docs/formats.md: subjects that the reference engine has filled get no new version from our records."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.golden.avro_records import recorded, registry
from tests.golden.databases.database import SkippedError
from tests.golden.run import Servers, scenarios
from tests.golden.scenario import DirectStream, Scenario, replay

AVRO = Path(__file__).parent / "avro"
CASES = [
    pytest.param(each, id=each.name, marks=[] if each.name == "postgres-evolution" else pytest.mark.long)
    for each in scenarios(AVRO)
]


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    """The servers the recordings are repeated on, and a registry."""
    with Servers() as servers:
        yield servers


def versions() -> dict[str, list[int]]:
    """The versions of every subject."""
    return {name: registry().ask("GET", f"/subjects/{name}/versions") for name in registry().ask("GET", "/subjects")}


@pytest.mark.parametrize("scenario", CASES)
def test_subjects_of_the_engine_get_no_new_version(scenario: Scenario, servers: Servers) -> None:
    try:
        filled = dict.fromkeys(
            (f"{event['topic']}-{part}", event[part]["schema"])
            for event in recorded(scenario.folder)
            for part in ("key", "value")
            if event[part] is not None
        )
        for subject, text in filled:
            registry().ask("POST", f"/subjects/{subject}/versions", {"schema": text})
        before = versions()
        server = servers.of(scenario)
        replay(scenario, server, DirectStream(server, scenario))
    except SkippedError as reason:
        pytest.skip(str(reason))
    assert len(before) >= len({subject for subject, _ in filled})
    assert versions() == before
