"""Records what a worker of Kafka Connect answers, from Kafka's own package, beside which our answers are held.

`python -m tests.unit.operate.record_connect` writes connect_exchange.json: a standalone worker with the connector that
reads a file, under the name `shop`. Java and Maven's registry are needed.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from tailrace.testing.jars import java, resolve_jars
from tailrace.testing.kafka import EmbeddedKafka
from tailrace.testing.process import free_port

FILE = Path(__file__).with_name("connect_exchange.json")
PLUGIN = "org.apache.kafka.connect.file.FileStreamSourceConnector"
VERSION = "4.3.1"
JARS = (
    *(f"org.apache.kafka:{name}:{VERSION}" for name in ("connect-runtime", "connect-file", "connect-json")),
    *(f"org.apache.logging.log4j:{name}:2.25.2" for name in ("log4j-core", "log4j-slf4j-impl")),
)
WORKER = """bootstrap.servers={bootstrap}
key.converter=org.apache.kafka.connect.json.JsonConverter
value.converter=org.apache.kafka.connect.json.JsonConverter
offset.storage.file.filename={folder}/offsets
offset.flush.interval.ms=500
listeners=http://127.0.0.1:{port}
"""
SHOP = "/connectors/shop"
LOGGER = "/admin/loggers/org.apache.kafka.connect"
VALIDATE = f"/connector-plugins/{PLUGIN}/config/validate"
# In this order; a state after an action is one that the worker gets to, so it is waited for.
REQUESTS: tuple[tuple[str, str, Any], ...] = (
    ("GET", "/", None),
    ("GET", "/connectors", None),
    ("GET", "/connectors?expand=info&expand=status", None),
    ("GET", SHOP, None),
    ("GET", f"{SHOP}/config", None),
    ("GET", f"{SHOP}/status", None),
    ("GET", f"{SHOP}/tasks", None),
    ("GET", f"{SHOP}/tasks/0/status", None),
    ("GET", f"{SHOP}/topics", None),
    ("GET", f"{SHOP}/offsets", None),
    ("GET", "/connectors/none", None),
    ("GET", "/connectors/none/status", None),
    ("PUT", "/connectors/none/pause", None),
    ("GET", "/connector-plugins", None),
    ("GET", "/connector-plugins?connectorsOnly=false", None),
    ("GET", f"/connector-plugins/{PLUGIN}/config", None),
    ("PUT", VALIDATE, {"connector.class": PLUGIN, "name": "x"}),
    ("GET", "/admin/loggers/root", None),
    ("PUT", LOGGER, {"level": "DEBUG"}),
    ("PUT", LOGGER, {"level": "LOUD"}),
    ("DELETE", f"{SHOP}/offsets", None),
    ("PUT", f"{SHOP}/pause", None),
    ("GET", f"{SHOP}/status PAUSED", None),
    ("POST", f"{SHOP}/restart", None),
    ("GET", f"{SHOP}/status PAUSED", None),
    ("POST", f"{SHOP}/restart?includeTasks=true", None),
    ("GET", f"{SHOP}/status PAUSED", None),
    ("PUT", f"{SHOP}/resume", None),
    ("GET", f"{SHOP}/status RUNNING", None),
    ("POST", f"{SHOP}/restart", None),
    ("POST", f"{SHOP}/restart?includeTasks=true&onlyFailed=true", None),
    ("POST", f"{SHOP}/tasks/0/restart", None),
    ("PUT", f"{SHOP}/stop", None),
    ("GET", f"{SHOP}/status STOPPED", None),
    ("POST", f"{SHOP}/restart", None),
    ("GET", f"{SHOP}/status STOPPED", None),
    ("DELETE", f"{SHOP}/offsets", None),
)


def ask(url: str, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    """Status and body of an answer."""
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    try:
        with urllib.request.urlopen(
            urllib.request.Request(url + path, data, headers, method=method), timeout=30
        ) as answer:
            return answer.status, json.loads(answer.read() or b"null")
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read() or b"null")


def recorded(url: str) -> list[dict[str, Any]]:
    """All requests with their answers."""
    found = []
    for method, path, body in REQUESTS:
        path, _, state = path.partition(" ")
        if state:
            time.sleep(2)  # a restart that would change the state has had its time
        deadline = time.monotonic() + 30
        while True:
            status, answer = ask(url, method, path, body)
            if not state or answer["connector"]["state"] == state or time.monotonic() > deadline:
                break
            time.sleep(0.2)
        found.append({"method": method, "path": path, "sent": body, "status": status, "answer": answer})
    return found


def main() -> None:
    """Run a worker and write the file."""
    jars = resolve_jars(JARS)
    with EmbeddedKafka() as kafka, tempfile.TemporaryDirectory() as folder:
        port, lines = free_port(), Path(folder, "lines")
        lines.write_text("one\ntwo\n", encoding="utf-8")
        settings = WORKER.format(bootstrap=kafka.bootstrap, folder=folder, port=port)
        Path(folder, "worker.properties").write_text(settings, encoding="utf-8")
        command = [java(), "-cp", ":".join(map(str, jars)), "org.apache.kafka.connect.cli.ConnectStandalone"]
        with subprocess.Popen([*command, f"{folder}/worker.properties"], cwd=folder) as worker:
            try:
                url = f"http://127.0.0.1:{port}"
                config = {"connector.class": PLUGIN, "tasks.max": "1", "file": str(lines), "topic": "lines"}
                started(url, {"name": "shop", "config": config})
                found = recorded(url)
            finally:
                worker.terminate()
    text = json.dumps(found, indent=1).replace(folder, "/data").replace(f"127.0.0.1:{port}", "worker:8083")
    FILE.write_text(text + "\n", encoding="utf-8")


def started(url: str, connector: dict[str, Any]) -> None:
    """Wait for the worker, make the connector, and wait for its offset."""
    deadline = time.monotonic() + 120
    while True:
        try:
            ask(url, "POST", "/connectors", connector)
            if ask(url, "GET", f"{SHOP}/offsets")[1].get("offsets"):
                return
        except OSError:
            pass
        if time.monotonic() > deadline:
            raise TimeoutError("the worker does not run")
        time.sleep(1)


if __name__ == "__main__":
    main()
