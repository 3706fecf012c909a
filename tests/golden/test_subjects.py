"""The how-to of docs/formats.md: subjects that the reference engine has filled get no new version from our records."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import httpx
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


def artifacts() -> str:
    """The address of the schemas."""
    return f"{registry().base}/apis/registry/v2/groups/default/artifacts"


def fill(name: str, text: str) -> None:
    """Register a schema as the engine's converter does."""
    named = {"X-Registry-ArtifactId": name, "X-Registry-ArtifactType": "AVRO", "Content-Type": "application/json"}
    query = {"ifExists": "RETURN_OR_UPDATE", "canonical": "false"}
    httpx.post(artifacts(), content=text, params=query, headers=named, timeout=30).raise_for_status()


def versions() -> dict[str, int]:
    """The number of versions of every schema."""
    names = [each["id"] for each in httpx.get(artifacts(), params={"limit": 500}, timeout=30).json()["artifacts"]]
    return {name: httpx.get(f"{artifacts()}/{quote(name)}/versions", timeout=30).json()["count"] for name in names}


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
            fill(subject, text)
        before = versions()
        server = servers.of(scenario)
        replay(scenario, server, DirectStream(server, scenario))
    except SkippedError as reason:
        pytest.skip(str(reason))
    assert len(before) >= len({subject for subject, _ in filled})
    assert versions() == before
