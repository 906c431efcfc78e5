"""The sink of events in a topic, where no cluster responds; the integration tests have one that does."""

import socket

import pytest

from proxy.telemetry.usage.events import Encoded
from proxy.telemetry.usage.kafka_sink import KafkaSink
from proxy.telemetry.usage.sink import SinkUnavailable


async def test_an_unreachable_cluster() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))  # and does not listen
        sink = KafkaSink([bound.getsockname()], "used", 1.0)
        with pytest.raises(SinkUnavailable, match=r"topic used: 127\.0\.0\.1:\d+: "):
            await sink.deliver([Encoded(b"k", b"{}")])
    await sink.release()
    assert (sink.name, sink.delivered, sink.lost) == ("kafka", 0, 0)
