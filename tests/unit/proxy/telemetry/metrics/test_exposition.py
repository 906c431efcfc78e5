"""What is written in parts is what the library writes in one."""

from collections.abc import Iterable, Iterator

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from proxy.telemetry import slices
from proxy.telemetry.metrics.exposition import SAMPLES_AT_A_TIME, exposition
from tests.support.loop_turns import counted_turns

OPEN_METRICS = "application/openmetrics-text; version=1.0.0"


def families() -> list[Metric]:
    gauge = GaugeMetricFamily("gauge", "Of one.", value=1.5)
    empty = GaugeMetricFamily("empty", "Of none.", labels=("a",))
    large = CounterMetricFamily("large", "Of # many\nlines.", labels=("name",))
    for number in range(2 * SAMPLES_AT_A_TIME + 1):
        large.add_metric((f'# HELP "{number}"\n# EOF\n',), number)
    return [gauge, empty, large]


class All(Collector):
    def collect(self) -> Iterable[Metric]:
        return families()


def steps() -> Iterator[Metric | None]:
    for family in families():
        yield None
        yield family


@pytest.mark.parametrize("accept", ["", "text/plain", OPEN_METRICS])
async def test_the_parts_add_up_to_the_whole_exposition(accept: str) -> None:
    encode, content_type = choose_encoder(accept)
    registry = CollectorRegistry()
    registry.register(All())
    assert await exposition(steps(), accept) == (encode(registry), content_type)


async def test_other_work_runs_between_the_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "SLICE_SECONDS", 0.0)
    async with counted_turns() as turns:
        await exposition(steps(), "")
    assert turns.count >= 3 + 5
