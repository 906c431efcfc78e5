import pytest

from proxy.admin.messages.create_topics import CREATE_TOPICS
from proxy.admin.messages.topics import TopicFields, read_topics_request
from proxy.admin.mutations.permit_charge import UNCERTAIN, PermitCharge
from proxy.admin.mutations.permits import Permits
from proxy.admin.yielder import Yielder
from proxy.quota.identity import Identity, QuotaEntity
from proxy.quota.kinds.controller_mutation import CONTROLLER_MUTATION_RATE, ControllerMutation
from proxy.quota.limits.limits import Limits
from tests.support.messages.kio_messages import request_frame
from tests.support.messages.mutations import create_topics, intercepted, to_end

WHO = Identity("u", "client", "127.0.0.1")
NOW = 1000.0
STRICT, PERMISSIVE = 7, 5


class Charging:
    """A request for the topics `a` and `b` of 30 partitions each; the bucket is full with 22 tokens."""

    def __init__(self, version: int) -> None:
        quota = ControllerMutation()
        quota.configure(Limits({QuotaEntity("u", None): {CONTROLLER_MUTATION_RATE: 2.0}}), NOW)
        bucket = quota.bucket(WHO, NOW)
        assert bucket is not None
        self.bucket = bucket
        given = intercepted(request_frame(create_topics({"a": 30, "b": 30}, version)))
        request = to_end(read_topics_request(CREATE_TOPICS, given.header, given.frame, Yielder()))
        self.topics = request.topics
        costs = {topic.key: Permits(30, 30) for topic in self.topics}
        self.charge = PermitCharge(quota, self.bucket, request, costs, WHO)

    def admit(self) -> list[bool]:
        return [self.charge.admit(topic, NOW) for topic in self.topics]

    @property
    def tokens(self) -> float:
        tokens = self.bucket.state(NOW).tokens
        assert tokens is not None
        return tokens


def test_strict_admits_while_tokens_are_left() -> None:
    charging = Charging(STRICT)
    full = charging.tokens
    assert charging.admit() == [True, False]
    assert (charging.tokens, charging.charge.total) == (full - 30, 30)


def test_permissive_admits_all() -> None:
    charging = Charging(PERMISSIVE)
    full = charging.tokens
    assert charging.admit() == [True, True]
    assert (charging.tokens, charging.charge.total) == (full - 60, 60)


@pytest.mark.parametrize(
    ("done", "gives_back", "total"),
    [
        (TopicFields("a", partitions=30), False, 30),
        (TopicFields("a", partitions=10), True, 10),
        (TopicFields("a", partitions=40), False, 40),
        (TopicFields("a"), False, 30),
        (TopicFields("a", error_code=36), True, 0),
        (TopicFields("a", error_code=UNCERTAIN), False, 30),
    ],
)
def test_settle_charges_what_the_broker_did(done: TopicFields, gives_back: bool, total: int) -> None:
    charging = Charging(STRICT)
    full = charging.tokens
    charging.admit()
    assert charging.charge.settle("a", done, NOW) is gives_back
    assert (charging.tokens, charging.charge.total) == (full - total, total)
