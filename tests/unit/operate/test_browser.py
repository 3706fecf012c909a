"""The console in a real browser: buttons by keyboard and by mouse, answers and errors, light and dark, a phone."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tailrace.errors import ConfigError
from tailrace.operate import actions
from tailrace.operate.server import TOKEN
from tailrace.operate.serving import serving
from tailrace.operate.status import ReplicaTable
from tailrace.pipeline.definition import HttpSection
from tailrace.pipeline.reconcile import ReconcileReport
from tailrace.pipeline.signaling import Sent
from tailrace.pipeline.tables import PropertyEdit, TablesChange
from tests.unit.operate.made import figures, with_tables
from tests.unit.operate.test_connect_api import Some

pytestmark = [pytest.mark.server, pytest.mark.filterwarnings("ignore::ResourceWarning")]

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
SENT = Sent("s1", "execute-snapshot", {}, "f", 5.0, True)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    found = os.environ.get("TAILRACE_BROWSER") or next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip("needs a Chromium in the PATH, or its place in TAILRACE_BROWSER")
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        yield driver.chromium.launch(executable_path=found, args=["--no-sandbox"])


class Files(Some):
    def file(self, name: str) -> Path:
        return Path(f"/pipelines/{name}.yaml")


@pytest.fixture
def pipelines() -> Files:
    shop, other = with_tables(figures(), 3), figures(name="other", sink={"kafka": {"bootstrap.servers": "k:9"}})
    lacking = ReplicaTable(
        "public.t1", "incomplete", "noon", "<b>no number</b>", takes="read it again", is_lacking=True
    )
    status = replace(shop.status, replica=(*shop.status.replica, lacking))
    return Files(replace(shop, status=status), other)


@pytest.fixture
def url(pipelines: Files, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv(TOKEN, "t0ken")
    with serving(pipelines, HttpSection(port=0)) as address:
        yield address


@pytest.fixture
def page(browser: Any, url: str) -> Iterator[Any]:
    page = browser.new_page(viewport={"width": 1200, "height": 900})
    broken = list[str]()
    page.on("pageerror", lambda error: broken.append(str(error)))
    page.goto(f"{url}/console")
    page.get_by_role("article", name="shop").wait_for()
    yield page
    page.close()
    assert broken == []


def button(page: Any, label: str, pipeline: str = "shop") -> Any:
    return page.get_by_role("article", name=pipeline).get_by_role("button", name=label)


def let_in(page: Any) -> None:
    """Type the token, by keyboard alone."""
    page.get_by_label("Token").focus()
    page.keyboard.type("t0ken")
    page.keyboard.press("Enter")
    page.get_by_text("the token is used in this tab").wait_for()
    page.locator("article button:enabled").first.wait_for()


def test_nothing_can_be_done_without_the_token_and_data_is_no_markup(page: Any) -> None:
    for label in ("Pause", "Restart", "Add tables", "Signal", "Reconcile", "Retry tables"):
        assert button(page, label).is_disabled()
    assert page.get_by_text("<b>no number</b>; read it again").is_visible()


def test_a_pipeline_is_paused_and_its_tables_are_retried(page: Any, pipelines: Files, monkeypatch: Any) -> None:
    monkeypatch.setattr(actions, "retry", lambda definition, names: SENT)
    let_in(page)
    button(page, "Pause").click()
    page.get_by_text("Pause: shop").wait_for()
    assert pipelines.done == ["paused shop"]
    button(page, "Retry tables").click()
    page.get_by_text("Retry tables: shop").wait_for()
    assert button(page, "Retry tables", "other").is_disabled(), "nothing is set aside there"
    assert button(page, "Reconcile", "other").is_disabled(), "Kafka is not compared"


def test_tables_are_added_by_keyboard_and_what_is_wrong_is_told(page: Any, monkeypatch: Any) -> None:
    asked = list[tuple[str, list[str], str]]()

    def add(file: Path, names: list[str], kind: str) -> TablesChange:
        asked.append((str(file), names, kind))
        if len(asked) == 1:
            raise ConfigError("there is no such table", where="public.x", remedy="Did you mean public.y?")
        return TablesChange(
            tuple(names), tuple(names), PropertyEdit("shop.yaml", "table.include.list", "y", True), SENT, "pub"
        )

    monkeypatch.setattr("tailrace.operate.actions.tables.add", add)
    let_in(page)
    button(page, "Add tables").focus()
    page.keyboard.press("Enter")
    page.get_by_role("dialog", name="Add tables: shop").wait_for()
    page.keyboard.type("public.x")
    page.keyboard.press("Enter")
    page.get_by_text("public.x: there is no such table; remedy: Did you mean public.y?").wait_for()
    page.get_by_label("Tables, with commas between").fill("public.y , public.z,")
    page.get_by_label("How existing rows are read").select_option("blocking")
    page.get_by_role("button", name="Send").click()
    page.get_by_text("public.y is added to pub").wait_for()
    assert asked[1] == ("/pipelines/shop.yaml", ["public.y", "public.z"], "blocking")
    page.wait_for_timeout(2500)
    assert page.get_by_role("dialog").is_visible(), "it stays while the figures are asked again"
    page.keyboard.press("Escape")
    assert not page.get_by_role("dialog").is_visible()
    assert page.evaluate("document.activeElement.dataset.key") == "shopAdd tables"


def test_a_signal_is_sent(page: Any, monkeypatch: Any) -> None:
    sent = list[tuple[str, Any]]()

    def send(definition: Any, type_: str, data: Any, id_: str | None) -> Any:
        sent.append((type_, data))
        return SENT

    monkeypatch.setattr(actions, "send", send)
    monkeypatch.setattr(actions, "refuse_unknown", lambda definition, names: None)
    let_in(page)
    button(page, "Signal").click()
    page.get_by_label("Tables or expressions").fill("public.t0")
    page.get_by_label("Condition in SQL").fill("id < 10")
    page.get_by_label("Further data").fill("{")
    page.keyboard.press("Enter")
    page.locator("#answered.bad").wait_for()
    page.get_by_label("Further data").fill('{"surrogate-key": "id"}')
    page.keyboard.press("Enter")
    page.get_by_text("signal s1 is sent, it is taken within 5 s").wait_for()
    conditions = [{"data-collection": "public.t0", "filter": "id < 10"}]
    data = {"data-collections": ["public.t0"], "type": "incremental", "additional-conditions": conditions}
    assert sent == [("execute-snapshot", {"surrogate-key": "id", **data})]


def test_a_replica_is_compared(page: Any, monkeypatch: Any) -> None:
    found = [
        ReconcileReport("public.t0", "equal"),
        ReconcileReport("public.t1", "different", missing=3, keys={"missing": [{}]}),
    ]
    monkeypatch.setattr(actions, "compare_all", lambda *_, **__: iter(found))
    let_in(page)
    button(page, "Reconcile").click()
    page.get_by_label("Have the pipeline read wrong rows again").check()
    page.keyboard.press("Enter")
    page.get_by_text("the replica is being compared with its source").wait_for()
    page.get_by_role("button", name="Close").click()
    page.get_by_text("1 of 2 tables are equal").wait_for()
    assert page.get_by_text("public.t1, different, 3 missing").is_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_light_and_dark_and_fits_a_phone(browser: Any, url: str, scheme: str) -> None:
    page = browser.new_page(viewport={"width": 375, "height": 700}, color_scheme=scheme, is_mobile=True)
    page.goto(f"{url}/console")
    page.get_by_role("article", name="shop").wait_for()
    let_in(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 375, "nothing is beyond the edge"
    red = page.evaluate("+getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0]")
    assert (red > 200) == (scheme == "light")
    button(page, "Signal").click()
    box = page.get_by_role("dialog").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 375
    assert page.evaluate(CONTRAST) >= 4.5, "text can be read"
    page.close()


CONTRAST = """() => {
  const parts = color => color.match(/[\\d.]+/g).slice(0, 3).map(each => each / 255)
    .map(each => each <= 0.03928 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4);
  const light = color => parts(color).reduce((sum, each, place) => sum + each * [0.2126, 0.7152, 0.0722][place], 0);
  const style = getComputedStyle(document.getElementById("asking"));
  const [one, other] = [light(style.color), light(style.backgroundColor)].sort((a, b) => b - a);
  return (one + 0.05) / (other + 0.05);
}"""
