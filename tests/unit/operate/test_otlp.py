"""Metrics by OpenTelemetry: what a collector gets."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tailrace.errors import ConfigError
from tailrace.operate import otlp
from tailrace.operate.metrics import FAMILIES
from tests.unit.operate.made import figures, with_tables
from tests.unit.operate.test_connect_api import Some

service = pytest.importorskip("opentelemetry.proto.collector.metrics.v1.metrics_service_pb2")


@pytest.fixture
def bodies(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bytes]]:
    """What a collector gets from here on."""
    got = list[bytes]()

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert self.path == "/v1/metrics"
            got.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *arguments: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{server.server_address[1]}")
    yield got
    server.shutdown()
    server.server_close()


def test_a_collector_gets_the_figures_of_all_pipelines(bodies: list[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "team=data")
    with otlp.exporting(Some(with_tables(figures(), 2), figures(name="other"))):
        pass
    (resource,) = service.ExportMetricsServiceRequest.FromString(bodies[-1]).resource_metrics
    about = {each.key: each.value.string_value for each in resource.resource.attributes}
    assert (about["service.name"], about["team"]) == ("tailrace", "data")
    metrics = {each.name: each for scope in resource.scope_metrics for each in scope.metrics}
    assert set(metrics) == {family.name for family in FAMILIES}
    events = metrics["tailrace_events"].sum
    assert events.is_monotonic
    values = {point.attributes[0].value.string_value: point.as_double for point in events.data_points}
    assert values == {"shop": 70, "other": 70}
    (aside,) = metrics["tailrace_dead_letters"].gauge.data_points
    labels = {each.key: each.value.string_value for each in aside.attributes}
    assert (labels, aside.as_double) == ({"pipeline": "shop", "table": "public.t1"}, 17)


def test_the_name_of_the_service_may_be_another(bodies: list[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_SERVICE_NAME", "cdc")
    with otlp.exporting(Some(figures())):
        pass
    (resource,) = service.ExportMetricsServiceRequest.FromString(bodies[-1]).resource_metrics
    assert "cdc" in {each.value.string_value for each in resource.resource.attributes}


def test_without_the_packages_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otlp, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match="OpenTelemetry's exporter is not installed"), otlp.exporting(Some()):
        pass
