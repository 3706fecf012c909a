"""What is done to pipelines by HTTP: what is refused, with which words, and that a comparison runs beside it."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tailrace.errors import ConfigError
from tailrace.operate import actions
from tailrace.operate.actions import Actions
from tailrace.operate.server import HttpRequest, Refusal
from tailrace.pipeline.reconcile import ReconcileReport
from tailrace.pipeline.tables import PropertyEdit, TablesChange
from tests.unit.operate.made import figures
from tests.unit.operate.test_connect_api import Some

KAFKA = {"kafka": {"bootstrap.servers": "k:9"}}


def done(acts: Actions, path: str, body: Any = None, method: str = "POST") -> Any:
    content = b"" if body is None else json.dumps(body).encode()
    response = acts.answer(HttpRequest(method, path, body=content))
    assert response is not None
    return response.body


@pytest.mark.parametrize(
    ("path", "body", "status", "said"),
    [
        ("/pipelines/none/add", {"tables": ["a.b"]}, 404, "there is no pipeline none"),
        ("/pipelines/shop/add", {}, 400, "send tables"),
        ("/pipelines/shop/add", {"tables": "a.b"}, 400, "tables is a list"),
        ("/pipelines/shop/add", {"tables": ["a.b"], "snapshot": "later"}, 400, "incremental, blocking, none"),
        ("/pipelines/shop/add", {"tables": ["a.b"], "force": True}, 400, "force: not known here"),
        ("/pipelines/shop/add", {"tables": ["a.b"]}, 409, "has no file that names its tables"),
        ("/pipelines/shop/add", ["a.b"], 400, "should be a JSON object"),
        ("/pipelines/shop/signal", {}, 400, "send the signal's type"),
        ("/pipelines/shop/signal", {"type": "log", "kind": 3}, 400, "send the signal's type"),
        ("/pipelines/shop/signal", {"type": "sing"}, 409, "sing: is no type of signal; remedy: Take one of"),
        ("/pipelines/shop/signal", {"type": "log", "data": [1]}, 409, "is no JSON object"),
        ("/pipelines/shop/signal", {"type": "execute-snapshot"}, 409, "names no tables"),
        ("/pipelines/shop/reconcile", {"repair": "yes"}, 400, "repair is true or false"),
        ("/pipelines/events/reconcile", {}, 409, "only the tables of a replica are compared"),
    ],
)
def test_what_is_refused(path: str, body: Any, status: int, said: str) -> None:
    with pytest.raises(Refusal) as refused:
        done(Actions(Some(figures(), figures(name="events", sink=KAFKA))), path, body)
    assert refused.value.status == status
    assert said in str(refused.value)


def test_other_paths_are_left_to_others() -> None:
    acts = Actions(Some(figures()))
    for method, path in (("GET", "/pipelines/shop/add"), ("POST", "/pipelines/shop"), ("POST", "/pipelines/shop/sing")):
        assert acts.answer(HttpRequest(method, path)) is None


@pytest.mark.parametrize("written", [True, False])
def test_a_table_is_added_to_the_file_of_its_pipeline(written: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    class Files(Some):
        def file(self, name: str) -> Path:
            return Path(f"/etc/{name}.yaml")

    edit = PropertyEdit("shop.yaml", "table.include.list", None, written)
    monkeypatch.setattr(
        "tailrace.operate.actions.tables.add",
        lambda file, names, kind: TablesChange((str(file),), ("a.b",), edit, None, "p"),
    )
    said = done(Actions(Files(figures())), "/pipelines/shop/add", {"tables": ["a.b"]})
    assert said["tables"] == ("/etc/shop.yaml",)
    changed = "table.include.list is changed in shop.yaml" if written else "shop.yaml cannot be changed safely"
    assert changed in said["message"]
    assert "the first start reads the file" in said["message"]


def test_one_comparison_of_a_pipeline_runs_at_a_time_and_tells_no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    goes_on = threading.Event()

    def compare(*_: Any, **__: Any) -> Any:
        yield ReconcileReport("a.b", "different", different=1, keys={"different": [{"id": "hidden"}]})
        goes_on.wait(60)
        raise ConfigError("the source is away", where="shop")

    monkeypatch.setattr(actions, "compare_all", compare)
    acts = Actions(Some(figures()))
    assert done(acts, "/comparisons", method="GET") == {}
    done(acts, "/pipelines/shop/reconcile", {})
    with pytest.raises(Refusal, match="is being compared: 0 of 0"):
        done(acts, "/pipelines/shop/reconcile", {})
    goes_on.set()
    deadline = time.monotonic() + 60
    while (found := done(acts, "/comparisons", method="GET")["shop"])["is_running"]:
        assert time.monotonic() < deadline
    assert found["error"] == "shop: the source is away"
    assert [(each["table"], each["outcome"], each["different"]) for each in found["tables"]] == [
        ("a.b", "different", 1)
    ]
    assert "hidden" not in json.dumps(found)
    done(acts, "/pipelines/shop/reconcile")


def test_a_defect_of_a_comparison_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(actions, "compare_all", lambda *_, **__: [][0])
    acts = Actions(Some(figures()))
    done(acts, "/pipelines/shop/reconcile", {})
    deadline = time.monotonic() + 60
    while done(acts, "/comparisons", method="GET")["shop"]["error"] == "":
        assert time.monotonic() < deadline
    assert "IndexError" in done(acts, "/comparisons", method="GET")["shop"]["error"]
