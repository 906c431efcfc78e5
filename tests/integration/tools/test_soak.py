"""The scenarios of `make soak`, each in seconds."""

from pathlib import Path

import pytest

from bench.soak import brokers, churn, client_ids, connections, restarts, sharing
from bench.soak.scenario import Run, Scenario
from proxy.demo.embedded_kafka import EmbeddedKafka

pytestmark = pytest.mark.kafka
OF_ONE_BROKER = [
    restarts.HANDOVERS,
    *(module.SCENARIO for module in (restarts, connections, churn, client_ids)),
]


@pytest.mark.parametrize("scenario", OF_ONE_BROKER, ids=lambda scenario: scenario.name)
def test_one_broker(scenario: Scenario, kafka: EmbeddedKafka, tmp_path: Path) -> None:
    assert scenario.run(Run(kafka, tmp_path, short=True)).failures == []


@pytest.mark.parametrize("scenario", [brokers.SCENARIO, sharing.SCENARIO], ids=lambda each: each.name)
def test_three_brokers(scenario: Scenario, kafka_cluster: EmbeddedKafka, tmp_path: Path) -> None:
    assert scenario.run(Run(kafka_cluster, tmp_path, short=True)).failures == []
