"""The admin port: /readyz tells what keeps clients from being served, and what else is wrong."""

import pytest
from aiohttp.test_utils import TestClient, TestServer
from prometheus_client.registry import Collector

from proxy.quota.bucket import BucketState
from proxy.quota.engine import ALL_BROKERS
from proxy.telemetry.http import AdminSite


class Nothing(Collector):
    def collect(self) -> list[object]:  # type: ignore[override]
        return []


def site(problems: list[str], warnings: list[str], buckets: list[tuple[int, BucketState]]) -> TestClient:
    pages = AdminSite(Nothing(), lambda: problems, lambda: warnings, lambda: buckets, lambda: 100.0)
    return TestClient(TestServer(pages.application()))


@pytest.mark.parametrize(
    ("problems", "warnings", "status"),
    [
        ([], [], 200),
        ([], ["the topic is away"], 200),
        (["no broker answers"], [], 503),
        (["no broker answers"], ["the topic is away"], 503),
    ],
)
async def test_readyz(problems: list[str], warnings: list[str], status: int) -> None:
    async with site(problems, warnings, []) as client:
        answer = await client.get("/readyz")
        assert answer.status == status
        assert await answer.json() == {
            "ready": status == 200,
            "problems": problems,
            "warnings": warnings,
            "certificate_days_left": {},
        }


async def test_a_bucket_of_all_brokers() -> None:
    state = BucketState("controller_mutation_rate", "alice", "", 5.0, 1.0, 0.0, 0, 0.0)
    async with site([], [], [(ALL_BROKERS, state)]) as client:
        answer = await (await client.get("/api/quotas")).json()
    assert [bucket["broker"] for bucket in answer["quotas"]] == [None]


async def test_quotas() -> None:
    states = [
        (1, BucketState("producer_byte_rate", "alice", "", 5.0, 1.0, 101.0, 2, 1.5)),
        (2, BucketState("connection_creation_rate", "", "", 3.0, 1.0, 99.0, 2, 1.5, "observe", "10.0.0.1")),
    ]
    async with site([], [], states) as client:
        answer = await (await client.get("/api/quotas")).json()
    first, second = answer["quotas"]
    assert first == {
        "kind": "producer_byte_rate",
        "broker": 1,
        "entity": {"user": "alice"},
        "mode": "enforce",
        "limit": 5.0,
        "rate": 1.0,
        "throttled": True,
        "throttled_requests": 2,
        "throttle_seconds": 1.5,
    }
    assert (second["entity"], second["mode"], second["throttled"]) == ({"ip": "10.0.0.1"}, "observe", False)
