"""The console: one page that loads nothing, and what it asks for."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tailrace.operate import console, recent
from tailrace.operate.connect_api import ConnectApi
from tailrace.operate.server import HttpRequest, Refusal
from tailrace.operate.serving import answers
from tests.unit.operate.made import figures, with_tables
from tests.unit.operate.test_connect_api import Some
from tests.unit.operate.test_watch import watch as watch

PAGE = Path(console.__file__).with_name("console.html").read_text(encoding="utf-8")


def test_a_browser_is_led_to_the_page_and_other_clients_get_json() -> None:
    answer = answers(Some(figures()))
    led = answer(HttpRequest("GET", "/", accepts="text/html,application/xhtml+xml"))
    assert (led.status, led.headers["Location"]) == (302, "/console")
    page = answer(HttpRequest("GET", "/console"))
    assert page.type == "text/html; charset=utf-8"
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    assert answer(HttpRequest("GET", "/", accepts="application/json")).body["version"]


def test_the_page_loads_nothing_and_writes_no_markup_of_data() -> None:
    assert not re.findall(r"https?://(?!www\.w3\.org/2000/svg)", PAGE)
    assert not re.findall(r"<(?:link|img|script\s+src)|@import|url\(", PAGE)
    assert not re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", PAGE)


def test_what_the_page_asks_for_is_answered() -> None:
    pipelines = Some(with_tables(figures(), 3))
    recent.add({"time": "noon", "level": "info", "message": "hello"})
    answer = answers(pipelines)
    assert answer(HttpRequest("GET", "/log")).body[0]["message"] == "hello"
    (shown,) = json.loads(answer(HttpRequest("GET", "/status")).content)
    used = set(re.findall(r"\bpipeline\.(\w+)", PAGE)) - {"value"}
    assert used <= set(shown), used - set(shown)
    for path, method in re.findall(r'"(/(?:pause|resume|restart))", "(\w+)"', PAGE):
        assert ConnectApi(pipelines).answer(HttpRequest(method, f"/connectors/shop{path}")) is not None
    assert pipelines.done == ["paused shop", "running shop", "restart shop"]
    assert answer(HttpRequest("GET", "/comparisons")).body == {}
    for action in set(re.findall(r'steer\(pipeline, "(\w+)"', PAGE)):
        with pytest.raises(Refusal, match=r"force: not known here"):
            answer(HttpRequest("POST", f"/pipelines/shop/{action}", body=b'{"force": 1}'))


def test_the_script_is_valid(tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("needs node")
    script = PAGE.partition("<script>")[2].partition("</script>")[0]
    (tmp_path / "page.js").write_text(script, encoding="utf-8")
    done = subprocess.run([node, "--check", tmp_path / "page.js"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
