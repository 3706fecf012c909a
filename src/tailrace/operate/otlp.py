"""Exports our own metrics by OpenTelemetry's exporter, by OTLP over HTTP; its environment variables say where to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

from tailrace.errors import ConfigError
from tailrace.operate.metrics import FAMILIES, MetricFamily
from tailrace.operate.pipelines import Pipelines
from tailrace.version import __version__

if TYPE_CHECKING:
    from opentelemetry.metrics import CallbackOptions, Observation

# The end of the process waits so long for its last figures to arrive.
_PATIENCE_MS = 5000


@contextmanager
def exporting(pipelines: Pipelines) -> Iterator[None]:
    """Exports figures meanwhile, every `OTEL_METRIC_EXPORT_INTERVAL` (60 s), and once more at the end.

    Raises ConfigError where OpenTelemetry is not installed. What cannot be delivered is logged by the exporter.
    """
    if find_spec("opentelemetry") is None or find_spec("opentelemetry.exporter") is None:
        raise ConfigError(
            "OpenTelemetry's exporter is not installed", where="--otlp", remedy="pip install 'tailrace[otlp]'"
        )
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
    from opentelemetry.sdk.resources import SERVICE_NAME, Resource

    resource = Resource.create({"service.version": __version__})
    if str(resource.attributes.get(SERVICE_NAME, "")).startswith("unknown_service"):
        resource = resource.merge(Resource({SERVICE_NAME: "tailrace"}))
    provider = MeterProvider([PeriodicExportingMetricReader(OTLPMetricExporter())], resource)
    meter = provider.get_meter("tailrace", __version__)
    for family in FAMILIES:
        make = meter.create_observable_counter if family.is_counter else meter.create_observable_gauge
        make(family.name, [_observed(family, pipelines)], description=family.help)
    try:
        yield
    finally:
        provider.shutdown(_PATIENCE_MS)


def _observed(family: MetricFamily, pipelines: Pipelines) -> Callable[[CallbackOptions], Iterable[Observation]]:
    """What gives the values of a metric for all pipelines, under the labels that it has for Prometheus."""
    from opentelemetry.metrics import Observation

    def observe(_: CallbackOptions) -> Iterable[Observation]:
        for figures in pipelines.figures():
            for labels, value in family.samples(figures):
                names = ("pipeline", *family.labels)
                values = (figures.definition.name, *labels)
                yield Observation(float(value), dict(zip(names, values, strict=True)))

    return observe
