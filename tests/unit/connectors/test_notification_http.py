"""Notifications by HTTP: what arrives, how often it is tried, and that an address which is away stops nothing."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tailrace.config import Config
from tailrace.connectors import notification_http
from tailrace.connectors.notifications import COMPLETED, INITIAL, STARTED, Notice, notify, scanned
from tailrace.connectors.postgres.config import resolve
from tailrace.errors import ConfigError
from tests.unit.connectors.posted import Endpoint

MINIMAL = {"database.hostname": "db", "database.user": "cdc", "database.dbname": "shop", "topic.prefix": "shop"}


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    server = Endpoint()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notification_http, "_FIRST_PAUSE_SECONDS", 0.001)
    monkeypatch.setattr(notification_http, "_LONGEST_PAUSE_SECONDS", 0.01)
    # What is delivered is delivered when `notify` returns, however busy the machine is.
    monkeypatch.setattr(notification_http, "_PATIENCE_SECONDS", 60.0)


def configured(url: str, **properties: str) -> Config:
    """A configuration with this channel alone, which may post to this machine."""
    own = {"notification.enabled.channels": "http", "notification.http.url": url}
    return resolve({**MINIMAL, "notification.http.allow.private.networks": "true", **own, **properties})


def test_an_address_gets_notifications_in_order(endpoint: Endpoint) -> None:
    notify(configured(endpoint.url), [Notice(INITIAL, STARTED), scanned(INITIAL, "public.t", "public.t").with_rows(3)])
    assert [body["type"] for body in endpoint.bodies] == ["STARTED", "TABLE_SCAN_COMPLETED"]
    assert set(endpoint.bodies[0]) == {"id", "type", "aggregate_type", "additional_data", "timestamp"}
    assert endpoint.bodies[1]["additional_data"]["total_rows_scanned"] == "3"
    assert set(endpoint.types) == {"application/json"}


@pytest.mark.parametrize(("type_", "retries", "tries"), [(STARTED, "2", 3), (STARTED, "0", 1), (COMPLETED, "0", 4)])
def test_what_is_refused_is_tried_again_so_often(endpoint: Endpoint, type_: str, retries: str, tries: int) -> None:
    endpoint.answers = [500, 302, 404, 503, 500]
    notify(configured(endpoint.url, **{"notification.http.retries": retries}), [Notice(INITIAL, type_)])
    assert len(endpoint.bodies) == tries
    assert len({body["id"] for body in endpoint.bodies}) == 1


def test_an_address_that_is_away_is_told_once_and_nobody_waits(
    endpoint: Endpoint, caplog: pytest.LogCaptureFixture
) -> None:
    endpoint.answers = [500] * 4
    config = configured(endpoint.url, **{"notification.http.retries": "1"})
    notify(config, [Notice(INITIAL, STARTED)])
    notify(config, [Notice(INITIAL, STARTED)])
    wait_until(lambda: not endpoint.answers)
    notify(config, [Notice(INITIAL, STARTED)])
    wait_until(lambda: "again" in caplog.text)
    assert [record.getMessage() for record in caplog.records] == [
        "notifications do not reach http://127.0.0.1: status 500; the pipeline goes on without them. Check "
        "notification.http.url, and that this machine reaches it",
        "http://127.0.0.1 takes notifications again, 2 were lost",
    ]


def test_an_answer_has_its_time_and_nobody_waits_longer_than_two_seconds(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(notification_http, "_PATIENCE_SECONDS", 0.05)
    goes_on = threading.Event()
    endpoint.holds = goes_on
    try:
        notify(configured(endpoint.url, **{"notification.http.timeout.ms": "60000"}), [Notice(INITIAL, STARTED)])
        assert (endpoint.bodies, caplog.text) == ([], ""), "the answer was waited for"
        limits = {"notification.http.timeout.ms": "100", "notification.http.retries": "0"}
        notify(configured(endpoint.url, **limits), [Notice(INITIAL, STARTED)])
        wait_until(lambda: "timed out" in caplog.text)
    finally:
        goes_on.set()


def test_more_than_the_most_that_may_wait_is_dropped(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(notification_http, "_WAITING", 2)
    goes_on = threading.Event()
    monkeypatch.setattr(notification_http.Channel, "_deliver", lambda *_: goes_on.wait(60))
    notify(configured(endpoint.url), [Notice(INITIAL, STARTED)] * 5)
    goes_on.set()
    assert "do not reach http://127.0.0.1: 2 notifications are waiting" in caplog.text
    assert "secret" not in caplog.text


@pytest.mark.parametrize("host", ["127.0.0.1", "10.1.2.3", "192.168.0.9", "169.254.169.254", "0.0.0.0", "localhost"])
def test_private_addresses_are_refused_unless_they_are_allowed(host: str, caplog: pytest.LogCaptureFixture) -> None:
    config = configured(f"http://{host}:9/", **{"notification.http.allow.private.networks": "false"})
    notify(config, [Notice(INITIAL, STARTED)])
    assert f"{host} is this machine or in a private network" in caplog.text


@pytest.mark.parametrize("address", ["::1", "fd00::1", "::ffff:10.0.0.1", "fe80::1%eth0", "172.31.255.255"])
def test_addresses_that_are_private(address: str) -> None:
    assert notification_http._is_private(address)


@pytest.mark.parametrize("address", ["8.8.8.8", "172.32.0.1", "2001:4860:4860::8888", "::ffff:8.8.8.8"])
def test_addresses_that_are_public(address: str) -> None:
    assert not notification_http._is_private(address)


def test_what_the_channel_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match=r"notification\.http\.url: A value is required"):
        resolve({**MINIMAL, "notification.enabled.channels": "http"})
    for url in ("ftp://host/", "http:///path", "hooks.example.com", "https://name:word@host/"):
        with pytest.raises(ConfigError, match=r"An http\(s\) URL with a host is expected"):
            configured(url)
    monkeypatch.setattr("tailrace.config.shared.find_spec", lambda name: None if name == "tenacity" else name)
    with pytest.raises(ConfigError, match="the http notification channel needs tenacity"):
        configured("https://host/")


def test_the_address_is_a_secret() -> None:
    assert configured("https://host/hidden").shown()["notification.http.url"] == "********"


def wait_until(done: Any) -> None:
    deadline = time.monotonic() + 60
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.01)
