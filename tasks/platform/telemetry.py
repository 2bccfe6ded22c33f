"""Spans and gauges by OpenTelemetry, where its own variables name an exporter.

`OTEL_TRACES_EXPORTER` and `OTEL_METRICS_EXPORTER` are `otlp` or `console`; the other variables of
OpenTelemetry (`OTEL_EXPORTER_OTLP_ENDPOINT` ...) hold as well. Without the two nothing is imported.
"""

import logging
import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

logger = logging.getLogger(__name__)
SERVICE = "eachprompt"
_EXPORTERS = ("OTEL_TRACES_EXPORTER", "OTEL_METRICS_EXPORTER")


@contextmanager
def span(name: str, attributes: Mapping[str, str]) -> Iterator[None]:
    """Time the block; an error that leaves it is part of the span."""
    if not _is_on():
        yield
        return
    from opentelemetry import trace

    with trace.get_tracer(SERVICE).start_as_current_span(name, attributes=dict(attributes)):
        yield


def add_span(name: str, seconds: float) -> None:
    """Add a part of the current span that ends now."""
    if not _is_on():
        return
    from opentelemetry import trace

    end = time.time_ns()
    tracer = trace.get_tracer(SERVICE)
    tracer.start_span(name, start_time=end - round(seconds * 1e9)).end(end)


def show(values: Mapping[str, float], attributes: Mapping[str, str]) -> None:
    """Set one gauge per value."""
    if not _is_on():
        return
    for name, value in values.items():
        _gauge(name).set(value, dict(attributes))


def _is_on() -> bool:
    has_exporter = any(os.environ.get(name, "none") not in ("", "none") for name in _EXPORTERS)
    return has_exporter and _configured()


@cache
def _configured() -> bool:
    """Let OpenTelemetry read its variables, unless `opentelemetry-instrument` has."""
    from opentelemetry import trace

    if not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        return True
    # Made for distributions of OpenTelemetry, of which none is in our lock files.
    from opentelemetry.sdk._configuration import (
        _OTelSDKConfigurator,  # pyright: ignore[reportPrivateUsage]
    )

    os.environ.setdefault("OTEL_SERVICE_NAME", SERVICE)
    try:
        _OTelSDKConfigurator().configure()
    except (RuntimeError, ValueError) as error:  # an exporter that this image does not have
        logger.warning("no spans and no metrics are sent: %s", error)
        return False
    return True


@cache
def _gauge(name: str) -> Any:
    from opentelemetry import metrics

    return metrics.get_meter(SERVICE).create_gauge(re.sub(r"[^\w\-./]", "_", name, flags=re.ASCII))
