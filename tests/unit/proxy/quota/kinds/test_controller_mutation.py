"""KIP-599 by numbers, and the laws of test_every_kind as far as they hold for a quota that no engine asks."""

from typing import Unpack

import pytest

from proxy.quota.engine import QuotaEngine
from proxy.quota.engines import ALL_BROKERS, QuotaEngines
from proxy.quota.identity import DEFAULT, Identity, QuotaEntity
from proxy.quota.kinds import load_kinds
from proxy.quota.kinds.controller_mutation import (
    API_KEYS,
    CONTROLLER_MUTATION_RATE,
    KIND,
    ControllerMutation,
)
from proxy.quota.limits.enforcement import OBSERVE, PACE, WINDOW
from proxy.quota.limits.limits import Limits
from proxy.quota.quota import DOUBLE, PER_CLUSTER
from proxy.quota.verdict import ALLOW
from proxy.wire.views import RequestView, ResponseView
from tests.support.present import present
from tests.support.quotas.buckets import bucket_states, live_by_node
from tests.support.quotas.enforcement import EnforcementOptions, enforcement

WHO = Identity("u", "c", "127.0.0.1")
NOW = 1000.0


def limits(rate: float = 2.0, algorithm: str = PACE, **settings: Unpack[EnforcementOptions]) -> Limits:
    return Limits(
        {QuotaEntity("u", None): {CONTROLLER_MUTATION_RATE: rate}},
        settings=enforcement(algorithm=algorithm, **settings),
    )


def quota_of(
    rate: float = 2.0, algorithm: str = PACE, **settings: Unpack[EnforcementOptions]
) -> ControllerMutation:
    quota = ControllerMutation()
    quota.configure(limits(rate, algorithm, **settings), NOW)
    return quota


class Mutations:
    """A client's mutations, each at a time in seconds from the start."""

    def __init__(
        self, rate: float = 2.0, algorithm: str = PACE, **settings: Unpack[EnforcementOptions]
    ) -> None:
        self.quota = quota_of(rate, algorithm, **settings)
        self.bucket = present(self.quota.bucket(WHO, NOW))

    def tokens(self, at: float = 0.0) -> float:
        return present(self.bucket.state(NOW + at).tokens)

    def strict(self, permits: int, at: float = 0.0) -> bool:
        return self.quota.charge_strict(self.bucket, permits, NOW + at)

    def permissive(self, permits: int, at: float = 0.0) -> None:
        self.quota.charge_permissive(self.bucket, permits, NOW + at)

    def give_back(self, permits: int, at: float = 0.0) -> None:
        self.quota.give_back(self.bucket, permits, NOW + at)

    def wait(self, at: float = 0.0) -> float:
        return self.quota.throttle(self.bucket, NOW + at).throttle_seconds


def test_the_kind() -> None:
    assert KIND in load_kinds()
    assert (KIND.scope, KIND.build().api_keys) == (PER_CLUSTER, API_KEYS)
    assert [(key.name, key.type) for key in KIND.keys] == [("controller_mutation_rate", DOUBLE)]
    [key] = KIND.keys
    assert key.problem(0.5) == ""
    assert "greater than 0" in key.problem(0)
    assert "users and client ids" in key.misplaced(QuotaEntity(None, None, DEFAULT))


def test_it_starts_full_with_a_burst_of_all_windows() -> None:
    assert Mutations(2.0).tokens() == 22.0
    assert Mutations(5.0, mutation_samples=10, mutation_window_seconds=3.0).tokens() == 150.0


def test_bandwidths_own_settings_do_not_matter() -> None:
    assert Mutations(2.0, algorithm=WINDOW, samples=3, window_seconds=7.0, burst_seconds=9.0).tokens() == 22.0


def test_strict_admits_what_crosses_the_limit_and_rejects_the_next() -> None:
    """2 x 30 partitions at 2 per second."""
    client = Mutations(2.0)
    assert client.strict(30)
    assert client.tokens() == -8.0
    assert not client.strict(30)
    assert not client.strict(1)
    assert client.tokens() == -8.0
    assert client.wait() == 4.0
    assert not client.strict(1, at=3.999)
    assert client.strict(1, at=4.0)


def test_strict_at_zero_tokens_is_admitted() -> None:
    client = Mutations(2.0)
    assert client.strict(22)
    assert client.tokens() == 0.0
    assert client.wait() == 0.0
    assert client.strict(1)


def test_permissive_is_always_charged() -> None:
    client = Mutations(2.0)
    client.permissive(30)
    assert client.wait() == 4.0
    client.permissive(30)
    assert client.tokens() == -38.0
    assert client.wait() == 19.0


def test_the_designs_example() -> None:
    """KIP-599: 5 per second with a burst of 500; 560 mutations leave -60 tokens, which take 12 s."""
    client = Mutations(5.0, mutation_samples=100, mutation_window_seconds=1.0)
    assert client.tokens() == 500.0
    assert client.strict(560)
    assert client.tokens() == -60.0
    assert client.wait() == 12.0
    assert not client.strict(1, at=11.99)
    assert client.strict(1, at=12.0)


def test_tokens_refill_up_to_the_burst() -> None:
    client = Mutations(2.0)
    client.strict(20)
    assert client.tokens(at=5.0) == 12.0
    assert client.tokens(at=100.0) == 22.0


def test_what_is_given_back_can_be_used_again_up_to_the_burst() -> None:
    client = Mutations(2.0)
    client.strict(30)
    client.give_back(30)
    assert client.tokens() == 22.0
    assert client.bucket.state(NOW).rate == 0.0
    client.give_back(30)
    assert client.tokens() == 22.0


@pytest.mark.parametrize("algorithm", [PACE, WINDOW])
def test_a_quota_that_is_removed_and_set_again_begins_with_all_tokens(algorithm: str) -> None:
    """As with Kafka, whose bucket refills at once while there is no quota."""
    client = Mutations(2.0, algorithm)
    assert client.strict(500)
    assert client.tokens() == -478.0
    client.quota.configure(Limits({}, settings=enforcement(algorithm=algorithm)), NOW + 1)
    assert client.strict(10, at=1.0), "of a request that waits"
    assert client.wait(at=1.0) == 0.0
    client.give_back(10, at=1.0)
    client.quota.configure(limits(2.0, algorithm), NOW + 2)
    assert client.tokens(at=2.0) == 22.0
    assert client.strict(30, at=2.0)
    client.quota.configure(limits(3.0, algorithm), NOW + 2)
    assert client.tokens(at=2.0) == -8.0, "another limit keeps the debt"


def test_a_wait_is_counted() -> None:
    client = Mutations(2.0)
    client.strict(30)
    client.wait()
    state = client.bucket.state(NOW)
    assert (state.throttled_requests, state.throttle_seconds, state.throttled_until) == (1, 4.0, NOW + 4.0)
    client.wait(at=4.0)
    assert client.bucket.state(NOW + 4.0).throttled_requests == 1


def test_new_limits_keep_the_tokens() -> None:
    client = Mutations(2.0)
    client.strict(30)
    client.quota.configure(limits(4.0), NOW)
    assert client.tokens() == -8.0
    assert client.wait() == 2.0
    client.quota.configure(limits(1.0), NOW + 10.0)
    assert client.tokens(at=10.0) == 11.0


def test_a_deleted_limit_is_gone_at_once() -> None:
    client = Mutations(2.0)
    client.strict(60)
    client.quota.configure(Limits({}), NOW)
    assert client.quota.bucket(WHO, NOW) is None
    assert client.quota.live() == []
    assert not client.quota.active


def test_other_entities_are_not_limited() -> None:
    quota = quota_of()
    assert quota.bucket(Identity("v", "c", "127.0.0.1"), NOW) is None
    assert ControllerMutation().bucket(WHO, NOW) is None
    assert not ControllerMutation().active
    assert quota.active


@pytest.mark.parametrize(
    "exempt", [{"exempt_users": ["u"]}, {"exempt_client_ids": ["c"]}, {"exempt_cidrs": ["127.0.0.0/8"]}]
)
def test_the_exempt_have_no_bucket(exempt: EnforcementOptions) -> None:
    quota = quota_of(**exempt)
    assert quota.bucket(WHO, NOW) is None
    assert quota.live() == []


def test_observed_everything_is_admitted_and_what_would_have_been_a_wait_is_counted() -> None:
    client = Mutations(2.0, mode=OBSERVE)
    assert client.strict(30)
    assert client.strict(30)
    assert client.wait() == 0.0
    state = client.bucket.state(NOW)
    assert state.mode == OBSERVE
    assert state.throttled_requests == 2
    assert state.throttle_seconds == pytest.approx(15.0)
    client.quota.configure(limits(2.0), NOW)
    assert client.tokens() == 0.0, "what was only observed is no debt"


def test_idle_state_is_dropped() -> None:
    client = Mutations(2.0)
    client.strict(1000)
    client.quota.forget_idle(NOW + 3599.0)
    assert client.quota.live()
    client.strict(1, at=10.0)
    client.quota.forget_idle(NOW + 3600.0)
    assert client.quota.live(), "one that is rejected has asked"
    client.quota.forget_idle(NOW + 3610.0)
    assert client.quota.live() == []
    bucket = present(client.quota.bucket(WHO, NOW + 3610.0))
    assert bucket.state(NOW + 3610.0).tokens == 22.0


def test_requests_are_intercepted_while_an_entity_has_the_quota() -> None:
    engine = QuotaEngine([ControllerMutation()])
    assert not any(engine.intercepts(key) for key in API_KEYS)
    engine.configure(limits(), NOW)
    assert all(engine.intercepts(key) for key in API_KEYS)
    assert not engine.intercepts(3)
    request = RequestView(19, 7, 1, "c", 10**6)
    assert engine.admit(request, WHO, NOW) is ALLOW
    assert engine.charge(request, ResponseView(7, True, 10**6), WHO, NOW) is ALLOW
    engine.configure(Limits({}), NOW)
    assert not engine.intercepts(19)


def test_all_brokers_share_one() -> None:
    engines = QuotaEngines([KIND], limits())
    engines.engine(1, NOW)
    engines.engine(2, NOW)
    quota = engines.shared(KIND)
    assert isinstance(quota, ControllerMutation)
    whose = quota.bucket(WHO, NOW)
    assert whose is not None
    quota.charge_strict(whose, 30, NOW)
    assert [bucket_states(engine, NOW)[0].tokens for engine in engines.engines().values()] == [-8.0, -8.0]
    [(broker, bucket)] = live_by_node(engines)
    assert (broker, bucket.state(NOW).tokens) == (ALL_BROKERS, -8.0)


def test_what_is_each_brokers_own_is_shown_beside_it() -> None:
    both = {CONTROLLER_MUTATION_RATE: 2.0, "producer_byte_rate": 1000.0}
    engines = QuotaEngines(load_kinds(), Limits({QuotaEntity("u", None): both}))
    for node_id in (1, 2):
        engines.engine(node_id, NOW).admit(RequestView(0, 9, 1, "c", 10), WHO, NOW)
    quota = engines.shared(KIND)
    assert isinstance(quota, ControllerMutation)
    whose = quota.bucket(WHO, NOW)
    assert whose is not None
    quota.charge_permissive(whose, 1, NOW)
    assert [(broker, bucket.quota) for broker, bucket in live_by_node(engines)] == [
        (ALL_BROKERS, CONTROLLER_MUTATION_RATE),
        (1, "producer_byte_rate"),
        (2, "producer_byte_rate"),
    ]
