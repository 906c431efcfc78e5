import asyncio

import pytest

from proxy.demo import tenants
from proxy.demo.tenants import CONSUMER, PRODUCER, Flow


@pytest.mark.parametrize(("key", "text"), [(PRODUCER, "bob produces"), (CONSUMER, "bob consumes")])
def test_a_flow_as_text(key: str, text: str) -> None:
    assert str(Flow("bob", key, None)) == text


class Client:
    """A client of a cluster that is gone for good: it never comes to its end."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    async def start(self) -> None:
        self.calls.append("start")

    async def stop(self) -> None:
        self.calls.append("stop")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.calls.append("given up")
            raise


async def test_a_client_that_does_not_stop_is_abandoned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tenants, "_STOP_SECONDS", 0.01)
    client = Client()
    async with asyncio.timeout(30), tenants._started(client):
        assert client.calls == ["start"]
    assert client.calls == ["start", "stop", "given up"]
