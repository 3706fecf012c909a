"""Names of transforms, conditions on them, and steps of a pipeline."""

from __future__ import annotations

import json
import pickle
from contextlib import suppress

import pytest

from tailrace.connectors.postgres.position import SOURCE
from tailrace.errors import ConfigError
from tailrace.model.change import ChangeBatch
from tailrace.transforms import parse
from tailrace.transforms.classes import PREDICATES, SHORT, TRANSFORMS
from tailrace.transforms.decode_message import DecodeMessageContent
from tailrace.transforms.encoder import Encoder
from tailrace.transforms.registry import stages
from tailrace.transforms.settings import Given, SettingsError
from tests.unit.events.changes import changes, table
from tests.unit.events.event_recordings import configured
from tests.unit.transforms.transformed import UNWRAP, headers, properties, rows

ROUTER = "org.apache.kafka.connect.transforms.RegexRouter"
CONNECT = "org.apache.kafka.connect.transforms."
IMAGE = {"id": 1, "code": "a", "note": None}


def batch() -> ChangeBatch:
    """A create, and a delete with its tombstone."""
    return changes(table(), {"op": "c", "after": IMAGE}, {"op": "d", "before": IMAGE})


def topics(predicate: dict[str, str], **more: str) -> str:
    """Which of create, delete and tombstone a transform under the predicate reached."""
    given = {
        **properties(ROUTER, {"regex": ".*", "replacement": "reached", "predicate": "p", **more}),
        "predicates": "p",
        **{f"predicates.p.{name}": text for name, text in predicate.items()},
    }
    return "".join("x" if row["topic"] == "reached" else "-" for row in rows(batch(), given))


def test_a_predicate_says_which_records_are_transformed() -> None:
    tombstone = {"type": CONNECT + "predicates.RecordIsTombstone"}
    assert topics(tombstone) == "--x"
    assert topics(tombstone, negate="true") == "xx-"
    assert topics({"type": CONNECT + "predicates.TopicNameMatches", "pattern": "server1"}) == "---"
    assert topics({"type": CONNECT + "predicates.TopicNameMatches", "pattern": "server1.*"}) == "xxx"
    name = "__debezium.context.runId"
    assert topics({"type": CONNECT + "predicates.HasHeaderKey", "name": name}) == "---"


def test_a_header_added_to_a_delete_is_on_a_tombstone_that_the_predicate_leaves_out() -> None:
    given = {
        **properties(
            "io.debezium.transforms.ExtractChangedRecordState", {"header.changed.name": "c", "predicate": "p"}
        ),
        "transforms.t.negate": "true",
        "predicates": "p",
        "predicates.p.type": CONNECT + "predicates.RecordIsTombstone",
    }
    assert [headers(row) for row in rows(batch(), given)] == [[("c", [])]] * 3


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            properties("io.debezium.transforms.ExtractNewRecordStat"),
            "did you mean io.debezium.transforms.ExtractNewRec",
        ),
        (properties("com.acme.Mine"), "Java classes cannot be loaded"),
        (properties("io.debezium.connector.x.transforms.No"), r"'io\.debezium\.connector\.x\.transforms\.No'"),
        ({"transforms": "t"}, r"transforms\.t\.type: A value is required"),
        (properties(UNWRAP, {"predicate": "q"}), "there is no predicate 'q'"),
        ({**properties(UNWRAP, {"predicate": "q"}), "predicates": "q"}, r"predicates\.q\.type: A value is required"),
        (properties(ROUTER, {"regex": "(", "replacement": "x"}), "no regular expression"),
        (properties(ROUTER, {"regex": "a"}), r"transforms\.t\.replacement: A value is required"),
    ],
)
def test_a_faulty_transform_is_an_error_of_the_configuration(given: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        configured(given)


def test_all_faults_are_named_at_once() -> None:
    given = {"transforms": "a,b", "transforms.a.type": "x", "transforms.b.type": UNWRAP, "transforms.b.oops": "1"}
    with pytest.raises(ConfigError, match=r"(?s)transforms\.a\.type.*transforms\.b\.oops"):
        configured(given)


def test_names_of_properties_may_have_lost_their_case() -> None:
    given = {"transforms": "Un", "transforms.un.type": UNWRAP}
    assert json.loads(rows(batch(), given)[0]["value"])["payload"] == IMAGE


def test_a_step_is_the_same_transform() -> None:
    step = {
        "type": "unwrap",
        "add.fields": ["op", "table"],
        "predicate": {"type": "TopicNameMatches", "pattern": ".*things"},
    }
    encoder = Encoder(configured({}), SOURCE, "run", parse(json.dumps([{"transform": step}])))
    found = [row for out in encoder.encode(batch()) for row in out.to_pylist()]
    settings = {"add.fields": "op,table"}
    assert [row["value"] for row in found] == [row["value"] for row in rows(batch(), properties(UNWRAP, settings))]


def test_a_faulty_step_is_named() -> None:
    with pytest.raises(ConfigError, match=r"steps\[0\]\.transform: type: unknown transform 'unwarp'"):
        parse('[{"transform": {"type": "unwarp"}}]')


def test_stages_travel_to_workers() -> None:
    (step,) = parse('[{"transform": {"type": "unwrap"}}]')
    assert pickle.loads(pickle.dumps(step)) == step


def test_short_names_are_of_known_transforms() -> None:
    assert set(SHORT.values()) <= set(TRANSFORMS)
    assert all(name.startswith(CONNECT + "predicates.") for name in PREDICATES)


@pytest.mark.parametrize("name", [*TRANSFORMS, *PREDICATES])
def test_every_name_is_that_of_a_class(name: str) -> None:
    with suppress(SettingsError):  # of a setting that the class requires
        assert {**TRANSFORMS, **PREDICATES}[name](Given("t.", {})) is not None


@pytest.mark.parametrize("connector", ["postgresql", "mysql"])
def test_a_transform_of_a_connector_has_one_meaning_under_every_connectors_name(connector: str) -> None:
    name = f"io.debezium.connector.{connector}.transforms.DecodeLogicalDecodingMessageContent"
    (stage,) = stages(configured(properties(name)))
    assert isinstance(stage.transform, DecodeMessageContent)
