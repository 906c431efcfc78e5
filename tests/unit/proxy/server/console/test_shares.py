"""The instances that share limits, and their shares, as the console shows them."""

import pytest

from proxy.quota.engines import ALL_BROKERS
from proxy.quota.measure.bucket import Bucket
from proxy.quota.measure.rate_rule import RateRule
from proxy.quota.sharing.local_uses import bucket_key
from proxy.quota.sharing.reports import SATURATED, BucketReport, Report
from proxy.quota.sharing.sharing import Sharing
from proxy.server.console.shares import MOST, read_key, shares
from proxy.wire.cursor import NO_PARTITION

ODD = 'ca:rol, 7:"é"/3'


class Process:
    """What a process of proxy-a knows, which has read reports."""

    def __init__(self) -> None:
        self.sharing = Sharing("proxy-a/1")
        self._offset = 0

    def read(self, instance: str, number: int, *entries: BucketReport) -> None:
        report = Report(instance=instance, number=number, read_to=self._offset, buckets=list(entries))
        self.sharing.see(report, self._offset, 1000 + 100 * self._offset)
        self._offset += 1


def key(
    quota: str = "producer_byte_rate",
    *,
    node_id: int = 1,
    user: str = "",
    client_id: str = "",
    ip: str = "",
    topic: str = "",
    partition: int = NO_PARTITION,
) -> str:
    bucket = Bucket(
        quota=quota,
        limit=1.0,
        rule=RateRule(),
        now=0.0,
        user=user,
        client_id=client_id,
        ip=ip,
        topic=topic,
        partition=partition,
    )
    return bucket_key(node_id, bucket)


def entry(key: str, waiting: int) -> BucketReport:
    return BucketReport(key=key, limit=1000.0, used=0.0, demand=SATURATED, waiting=waiting)


def crowd() -> Process:
    """Two processes of proxy-a, and proxy-b, which has half of the waiting connections of each worker."""
    process = Process()
    for name in ("proxy-a/1", "proxy-a/2", "proxy-b/1"):
        process.read(name, 1)
    for name, waiting in (("proxy-a/1", 2), ("proxy-a/2", 2), ("proxy-b/1", 1)):
        process.read(name, 2, entry(key(user="alice"), waiting), entry(key(user=ODD), waiting))
    return process


async def test_shares_of_an_instance_are_those_of_its_processes() -> None:
    found = await shares(crowd().sharing, "ALICE producer")
    assert [(each["instance"], each["processes"]) for each in found["instances"]] == [
        ("proxy-a", 2),
        ("proxy-b", 1),
    ]
    assert [each["age_seconds"] for each in found["instances"]] == [pytest.approx(0.1), 0.0]
    [limit] = found["limits"]
    assert (limit["kind"], limit["broker"], limit["entity"]) == ("producer_byte_rate", 1, {"user": "alice"})
    assert limit["limit"] == 1000.0
    assert limit["shares"]["proxy-a"] == pytest.approx(4 * limit["shares"]["proxy-b"])
    assert sum(limit["shares"].values()) >= 1000.0


async def test_without_sharing_there_are_none() -> None:
    assert await shares(None, "") == {"instances": [], "degraded": False, "total": 0, "limits": []}


async def test_unreadable_keys_are_skipped_and_the_rest_is_bounded() -> None:
    process = crowd()
    process.read("proxy-b/1", 3, entry("a newer key", 1), *(entry(key(user=str(n)), 1) for n in range(MOST)))
    found = await shares(process.sharing, "")
    assert (found["total"], len(found["limits"])) == (MOST + 2, MOST)


@pytest.mark.parametrize(
    ("written", "entity", "broker"),
    [
        (key(user=ODD, client_id="3:x"), {"user": ODD, "client-id": "3:x"}, 1),
        (key("request_percentage", node_id=ALL_BROKERS, ip="::1"), {"ip": "::1"}, None),
        (key("producer.byte.rate", topic="t", partition=0), {"topic": "t", "partition": 0}, 1),
        (key("total.bytes.in.per.sec.threshold", node_id=7), {}, 7),
    ],
)
def test_key(written: str, entity: dict[str, object], broker: int | None) -> None:
    read = read_key(written)
    assert (read["entity"], read["broker"]) == (entity, broker)


@pytest.mark.parametrize(
    "wrong",
    ["", "18", "x:y", "99:producer_byte_rate", "1:a1:b1:c1:d1:e", f"1:a1:b1:c1:d1:e{NO_PARTITION}/x", "-1:a"],
)
def test_key_that_is_none(wrong: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the key is the message
        read_key(wrong)
