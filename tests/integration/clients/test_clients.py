"""Every client works through the proxy as with brokers: each message arrives once, and in order."""

import pytest

from proxy.demo.embedded_kafka import EmbeddedKafka
from tests.support.kafka.clients import CLIENTS
from tests.support.kafka.topics import make_topic
from tests.support.messages.numbered import check_all_there
from tests.support.process.proxy_process import ProxyProcess

pytestmark = pytest.mark.kafka
COUNT = 2000


@pytest.mark.parametrize("name", CLIENTS)
def test_a_client_sends_and_reads(name: str, kafka: EmbeddedKafka, proxy: ProxyProcess) -> None:
    make_topic(kafka, f"clients-{name}", partitions=3)
    client = CLIENTS[name](kafka)
    passed = [proxy.metric("quota_proxy_bytes_total", direction=way) for way in ("in", "out")]
    client.send(proxy.bootstrap, f"clients-{name}", COUNT)
    got = client.read(proxy.bootstrap, f"clients-{name}", COUNT)
    for way, before in zip(("in", "out"), passed, strict=True):
        assert proxy.metric("quota_proxy_bytes_total", direction=way) - before > COUNT * 100, "past the proxy"
    check_all_there(got, COUNT)
    assert len({message.partition for message in got}) > 1
