"""Prometheus scrapes a running process, kcctl steers it, and a browser shows it: each by the program itself.

`make outside-tools` installs what package registries have of them and runs this. Without a program its test is skipped.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from tailrace.testing.postgres import EmbeddedPostgres
from tailrace.testing.process import free_port
from tests.behaviour.operated import Asked
from tests.behaviour.test_run_folder import SPARK, running, send, until

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

MONITORING = Path(__file__).parents[2] / "deploy" / "monitoring"
NAMES = ("shop", "crm", "archive")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Asked, EmbeddedPostgres]]:
    """Three pipelines: one streams, one has a table set aside, one has a wrong password."""
    root = tmp_path_factory.mktemp("outside")
    with EmbeddedPostgres(18, settings={"max_slot_wal_keep_size": "1GB"}) as server:
        server.create_database("shop")
        with server.connect("shop") as connection:
            for table in ("orders", "customers", "items"):
                connection.execute(f"CREATE TABLE {table} (id serial PRIMARY KEY, note text, n int)".encode())
                connection.execute(
                    f"INSERT INTO {table} (note, n) SELECT 'x', g FROM generate_series(1, 200) g".encode()
                )
        (root / "pipelines").mkdir()
        for name in NAMES:
            put(root / "pipelines", name, server)
        port = free_port()
        asked = Asked(f"http://127.0.0.1:{port}")
        with running(root / "pipelines", port):
            until(asked, shop="streaming", crm="streaming", archive="failed")
            asked.eventually(lambda: asked.metric("tailrace_table_rows_total", pipeline="crm") == 200, 60)
            with server.connect("shop") as connection:
                connection.execute("ALTER TABLE customers ALTER note TYPE int USING 1")
                connection.execute("INSERT INTO customers (note, n) VALUES (2, 2)")
            until(asked, shop="streaming", crm="incomplete", archive="failed")
            yield root, asked, server


def put(folder: Path, name: str, server: EmbeddedPostgres) -> None:
    """Write the file of a pipeline."""
    own = {"topic.prefix": name, "slot.name": name, "publication.name": f"pub_{name}"}
    tables = "customers" if name == "crm" else r"(orders|items)"
    more = {"publication.autocreate.mode": "filtered", "table.include.list": rf"public\.{tables}"}
    wrong = {"database.password": "wrong"} if name == "archive" else {}
    content = {
        "name": name,
        "source": {"config": {**server.properties("shop"), **own, **more, **wrong}},
        "sink": {"replica": {"path": f"../lake_{name}", "on_incomplete": "tell"}},
        "checkpoint": f"../state_{name}",
        "trigger": "200ms",
        "spark": SPARK,
    }
    (folder / f"{name}.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")


def program(name: str, variable: str) -> str:
    """A program in the PATH, or where a variable says; skips where there is none."""
    found = os.environ.get(variable) or shutil.which(name)
    if found is None:
        pytest.skip(f"needs {name} in the PATH, or its place in {variable}")
    return found


def write(server: EmbeddedPostgres, seconds: float) -> None:
    """Change rows for so long."""
    deadline = time.monotonic() + seconds
    with server.connect("shop") as connection:
        while time.monotonic() < deadline:
            connection.execute(
                "INSERT INTO orders (note, n) VALUES ('new', NULL); UPDATE items SET n = n + 1 WHERE id < 5"
            )
            time.sleep(0.1)


@contextmanager
def prometheus(root: Path, target: str) -> Iterator[str]:
    """A server that scrapes as deploy/monitoring says, each second; its address."""
    settings = yaml.safe_load((MONITORING / "prometheus.yaml").read_text(encoding="utf-8"))
    (root / "token").write_text("t0ken", encoding="utf-8")
    (job,) = settings["scrape_configs"]
    job |= {"scrape_interval": "1s", "authorization": {"credentials_file": str(root / "token")}}
    job["static_configs"] = [{"targets": [target]}]
    settings |= {"global": {"evaluation_interval": "1s"}, "rule_files": [str(MONITORING / "alerts.yaml")]}
    (root / "prometheus.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    port = free_port()
    arguments = [f"--config.file={root / 'prometheus.yaml'}", f"--storage.tsdb.path={root / 'tsdb'}"]
    arguments += [f"--web.listen-address=127.0.0.1:{port}", "--log.level=warn"]
    with subprocess.Popen([program("prometheus", "TAILRACE_PROMETHEUS"), *arguments]) as process:
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


def ask(url: str, path: str, **query: str) -> Any:
    """What Prometheus answers."""
    try:
        with urllib.request.urlopen(f"{url}/api/v1/{path}?{urllib.parse.urlencode(query)}", timeout=10) as answer:
            return json.loads(answer.read())["data"]
    except OSError:
        return None


def test_prometheus_scrapes_a_running_process(folder: tuple[Path, Asked, EmbeddedPostgres]) -> None:
    root, asked, server = folder
    with prometheus(root, asked.url.removeprefix("http://")) as url:
        asked.eventually(lambda: bool((ask(url, "targets") or {}).get("activeTargets")), 30)
        write(server, 15)
        (target,) = ask(url, "targets")["activeTargets"]
        assert (target["health"], target["lastError"]) == ("up", "")
        groups = ask(url, "rules")["groups"]
        rules = [rule for group in groups for rule in group["rules"]]
        assert {rule["health"] for rule in rules} == {"ok"}
        states = {rule["name"]: rule["state"] for rule in rules}
        assert (states["TailraceFailed"], states["TailraceIncomplete"]) == ("pending", "pending")
        assert states["TailraceAway"] == "inactive"
        found = ask(url, "query", query="tailrace_condition == 1")["result"]
        conditions = {each["metric"]["pipeline"]: each["metric"]["condition"] for each in found}
        assert conditions == {"shop": "streaming", "crm": "incomplete", "archive": "failed"}
        (seen,) = ask(url, "query", query='increase(tailrace_events_total{pipeline="shop"}[10s])')["result"]
        assert float(seen["value"][1]) > 0
        board = json.loads((MONITORING / "grafana.json").read_text(encoding="utf-8"))
        empty = [each for each in expressions(board) if not ask(url, "query", query=each)["result"]]
        assert [each for each in empty if "tailrace_snapshot_" not in each] == [], "only of a snapshot there is nothing"


def expressions(board: Any) -> list[str]:
    """The queries of a dashboard of Grafana, for all pipelines and the last seconds."""
    found = re.findall(r'"expr": ("(?:[^"\\]|\\.)*")', json.dumps(board))
    queries = [json.loads(each) for each in found]
    return [each.replace("$__rate_interval", "10s").replace("$pipeline", ".*") for each in queries]


COMMANDS = (
    ("info",),
    ("get", "connectors"),
    ("get", "plugins"),
    ("get", "loggers"),
    ("get", "logger", "tailrace"),
    ("get", "offsets", "shop"),
    ("describe", "connector", "shop"),
    ("describe", "connector", "archive"),
    ("describe", "plugin", "io.debezium.connector.postgresql.PostgresConnector"),
    ("patch", "logger", "tailrace", "--level", "DEBUG"),
)


def test_kcctl_shows_and_steers_pipelines(folder: tuple[Path, Asked, EmbeddedPostgres]) -> None:
    """`TAILRACE_KCCTL` is its jar, which Java 21 or newer runs (`TAILRACE_KCCTL_JAVA`)."""
    root, asked, _ = folder
    jar, java = program("kcctl.jar", "TAILRACE_KCCTL"), os.environ.get("TAILRACE_KCCTL_JAVA", "java")

    def kcctl(*arguments: str) -> str:
        done = subprocess.run(
            [java, f"-Duser.home={root}", "-jar", jar, *arguments], capture_output=True, text=True, check=False
        )
        print("$ kcctl", *arguments, f"\n{done.stdout}", done.stderr if done.returncode else "")
        assert done.returncode == 0, (arguments, done.stdout, done.stderr)
        return re.sub(r"\x1b\[[0-9;]*m", "", done.stdout)

    place = (f"--cluster={asked.url}", "--username=tailrace", "--password=t0ken")
    kcctl("config", "set-context", "tailrace", *place)
    shown = {arguments: kcctl(*arguments) for arguments in COMMANDS}
    for name, state in (("shop", "RUNNING"), ("crm", "RUNNING"), ("archive", "FAILED")):
        assert re.search(rf"{name} +source +{state}", shown["get", "connectors"]), name
    assert "password authentication failed" in shown["describe", "connector", "archive"]
    assert "PostgresConnector" in shown["get", "plugins"]
    for command, state in (("pause", "PAUSED"), ("resume", "RUNNING"), ("stop", "STOPPED"), ("resume", "RUNNING")):
        kcctl(command, "connector", "shop")
        asked.eventually(lambda: asked.json("/connectors/shop/status")["connector"]["state"] == state, 60)  # noqa: B023
    until(asked, shop="streaming")
    kcctl("restart", "connector", "shop")
    until(asked, shop="streaming")
    kcctl("restart", "task", "shop/0")
    until(asked, shop="streaming")


def test_a_browser_shows_running_pipelines(folder: tuple[Path, Asked, EmbeddedPostgres]) -> None:
    """Makes the pictures of docs/operating.md in the folder that TAILRACE_PICTURES names."""
    _, asked, server = folder
    chromium = program("chromium", "TAILRACE_BROWSER")
    playwright = pytest.importorskip("playwright.sync_api")
    pictures = Path(os.environ.get("TAILRACE_PICTURES", str(folder[0])))
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1200, "height": 900}, color_scheme="light")
        page.goto(f"{asked.url}/console")
        page.get_by_label("Token").fill("t0ken")
        page.keyboard.press("Enter")
        write(server, 25)
        shop = page.get_by_role("article", name="shop")
        shop.get_by_text("Newest changes").wait_for()
        assert shop.get_by_text("id ***, note ***, n null").count() > 0
        assert page.get_by_role("article").first.get_attribute("aria-label") == "archive", "who needs somebody is first"
        page.screenshot(path=pictures / "console.png", full_page=True)
        shop.get_by_role("button", name="Pause").click()
        shop.locator(".badge", has_text="paused").wait_for(timeout=30_000)
        shop.get_by_role("button", name="Resume").click()
        shop.locator(".badge", has_text="streaming").wait_for(timeout=60_000)
        phone = browser.new_page(viewport={"width": 375, "height": 760}, color_scheme="dark", is_mobile=True)
        phone.goto(f"{asked.url}/console")
        phone.get_by_label("Token").fill("t0ken")
        phone.keyboard.press("Enter")
        phone.get_by_role("article", name="shop").get_by_role("button", name="Signal").click()
        phone.get_by_label("Tables or expressions").fill("public.orders")
        phone.screenshot(path=pictures / "console-phone.png")
        phone.get_by_role("button", name="Send").click()
        phone.get_by_text("is sent, it is taken").wait_for()
        browser.close()
    assert send(asked, "GET", "/status")[0] == 200
