"""Replication throttles that brokers enforce: the proxy forwards them (quotas.replication.enforce)."""

import uuid

import pytest
from confluent_kafka.admin import ResourceType

from proxy.demo.embedded_kafka import EmbeddedKafka
from proxy.demo.kafka.broker_properties import INTERNAL
from tests.support.kafka.replication_throttles import LISTS, RATES, configs, set_configs
from tests.support.kafka.topics import drop_topic, make_topic
from tests.support.process.proxy_process import HOST, ProxyRunner
from tests.support.waiting import wait_until

pytestmark = pytest.mark.kafka
RATE = 4 << 20


@pytest.mark.parametrize("enforce", ["broker", "both"])
def test_brokers_enforce_it(enforce: str, kafka: EmbeddedKafka, run_proxy: ProxyRunner) -> None:
    """The throttle is set at the brokers; the proxy enforces it too only with `both`."""
    listener = {
        "name": "replication",
        "replication": True,
        "broker_port_base": 0,
        "upstream": {"brokers": {"1": f"{HOST}:{kafka.port(1, INTERNAL)}"}},
    }
    quotas = {"replication": {"enforce": enforce}, "store": {"topic": f"replication-{uuid.uuid4().hex[:8]}"}}
    proxy = run_proxy(kafka.bootstrap, settings={"quotas": quotas}, more_listeners=[listener])
    topic = f"replication-{enforce}"
    make_topic(kafka, topic)
    rates: dict[str, str | None] = dict.fromkeys((name.replace(".", "_") for name in RATES), str(RATE))
    lists: dict[str, str | None] = dict.fromkeys((name.replace(".", "_") for name in LISTS), "*")

    def there(bootstrap: str) -> set[str]:
        of_topic = configs(bootstrap, ResourceType.TOPIC, topic).keys()
        return {*LISTS, *RATES} & (of_topic | configs(bootstrap, ResourceType.BROKER, "1").keys())

    set_configs(proxy, ResourceType.BROKER, "1", **rates)
    set_configs(proxy, ResourceType.TOPIC, topic, **lists)
    wait_until(lambda: there(kafka.bootstrap) == {*LISTS, *RATES}, "the broker to apply them")
    assert there(proxy.bootstrap) == {*LISTS, *RATES}
    shown = [row for row in proxy.buckets() if row["kind"] == RATES[0]]
    assert bool(shown) == (enforce == "both")
    set_configs(proxy, ResourceType.BROKER, "1", **dict.fromkeys(rates))
    set_configs(proxy, ResourceType.TOPIC, topic, **dict.fromkeys(lists))
    wait_until(lambda: there(kafka.bootstrap) == set(), "the broker to apply it")
    assert there(proxy.bootstrap) == set()
    drop_topic(kafka, topic)
