import pytest

from proxy.quota.engine import QuotaEngine
from proxy.quota.identity import Identity
from proxy.quota.limits.limits import Limits
from proxy.relay.budgets.id_budget import IdBudget
from proxy.relay.fetch import omittable
from proxy.relay.fetch.omittable import OmittablePartitions
from tests.support.stories.fetching import COLD, HOT, Names, Omitting, topic_id

WHO = Identity("u", "c", "127.0.0.1")


class Asked(Omitting):
    """Remembers what it was asked about."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[str, int, int]] = []

    def may_omit(self, topic: str, partition: int, replica_id: int, who: Identity) -> bool:
        self.asked.append((topic, partition, replica_id))
        return super().may_omit(topic, partition, replica_id, who)


@pytest.fixture
def quota() -> Asked:
    return Asked()


@pytest.fixture
def engine(quota: Asked) -> QuotaEngine:
    return QuotaEngine([quota])


@pytest.fixture
def names() -> Names:
    return Names()


@pytest.fixture
def topics(engine: QuotaEngine, names: Names) -> OmittablePartitions:
    return OmittablePartitions(engine, IdBudget(names))


def test_each_partition_is_asked_about_once(topics: OmittablePartitions, quota: Asked) -> None:
    for _ in range(2):
        assert topics.find((b"hot", 1), 12, -1, WHO) == HOT
        assert topics.find((b"cold", 1), 12, -1, WHO) == ""
    assert quota.asked == [(HOT, 1, -1), (COLD, 1, -1)]


def test_other_limits_other_clients_and_other_followers_are_asked_about_anew(
    topics: OmittablePartitions, quota: Asked, engine: QuotaEngine
) -> None:
    topics.find((b"hot", 1), 12, -1, WHO)
    engine.configure(Limits({}), 0.0)
    for replica_id, who in [(-1, WHO), (2, WHO), (2, Identity("u", "d", "127.0.0.1"))]:
        topics.find((b"hot", 1), 12, replica_id, who)
    assert [asked[2] for asked in quota.asked] == [-1, -1, 2, 2]


def test_a_name_that_is_not_known_is_looked_for_again(topics: OmittablePartitions, names: Names) -> None:
    key = (topic_id(HOT).bytes, 0)
    names.hidden.add(HOT)
    assert topics.find(key, 13, -1, WHO) is None
    names.hidden.clear()
    assert topics.find(key, 13, -1, WHO) == HOT


def test_what_a_client_makes_up_is_forgotten(topics: OmittablePartitions, quota: Asked) -> None:
    for number in range(omittable.RESULTS_AT_MOST + 2):
        topics.find((b"cold", number), 12, 2, WHO)
    topics.find((b"cold", 0), 12, 2, WHO)
    assert len(quota.asked) == omittable.RESULTS_AT_MOST + 3


def test_for_a_consumer_the_quotas_are_asked_once_for_each_topic(
    topics: OmittablePartitions, quota: Asked
) -> None:
    for number in range(100):
        assert topics.find((b"cold", number), 12, -1, WHO) == ""
    assert len(quota.asked) == 1
    for number in range(omittable.RESULTS_AT_MOST + 2):
        topics.find((b"%d" % number, 0), 12, -1, WHO)
    topics.find((b"cold", 0), 12, -1, WHO)
    assert len(quota.asked) > omittable.RESULTS_AT_MOST
