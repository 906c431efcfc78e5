import pytest

from proxy.quota.engine import QuotaEngine
from proxy.quota.fetch.consumer_plan import ConsumerItem, ConsumerPlan
from proxy.quota.fetch.follower_plan import FollowerPlan
from proxy.quota.identity import DEFAULT, Identity, QuotaEntity
from proxy.quota.limits.enforcement import ENFORCE, OBSERVE
from proxy.quota.limits.limits import Limits
from proxy.quota.measure.bucket import Bucket
from proxy.quota.measure.rate_rule import RateRule
from proxy.quota.quota import Quota
from proxy.quota.usage import UsageLedger
from proxy.quota.verdict import ALLOW, Verdict
from proxy.wire.fetch.rewrite import Watermarks
from proxy.wire.views import RequestView, ResponseView
from tests.support.quotas.buckets import bucket_states, live_buckets
from tests.support.quotas.enforcement import enforcement
from tests.support.quotas.forgetting import forget_idle

WHO = Identity("u", "c", "127.0.0.1")
RESPONSE = ResponseView(9, True, 50)
SOME = Limits({QuotaEntity(DEFAULT, None): {"q": 1.0}})


class Fixed(Quota):
    """Says what it is told to, and remembers what it was told."""

    def __init__(
        self,
        api_keys: tuple[int, ...],
        name: str = "q",
        admit: float = 0.0,
        charge: float = 0.0,
        connect: float = 0.0,
        mode: str = ENFORCE,
        only_admits: tuple[int, ...] = (),
        only_charges: tuple[int, ...] = (),
    ) -> None:
        super().__init__(api_keys, only_admits=only_admits, only_charges=only_charges)
        self.bucket = Bucket(
            quota=name, user="u", limit=1.0, rule=RateRule(burst_seconds=1.0, mode=mode), now=0.0
        )
        self.connect_seconds = connect
        self.admit_seconds = admit
        self.charge_seconds = charge
        self.configured: list[Limits] = []
        self.forgotten: list[float] = []

    def admit(self, request: RequestView, who: Identity, now: float) -> Verdict:
        return Verdict(self.admit_seconds, self.bucket)

    def connect(self, address: str, now: float) -> Verdict:
        return Verdict(self.connect_seconds, self.bucket)

    def charge(self, request: RequestView, response: ResponseView, who: Identity, now: float) -> Verdict:
        return Verdict(self.charge_seconds, self.bucket)

    def configure(self, limits: Limits, now: float) -> None:
        self.configured.append(limits)

    def live(self) -> list[Bucket]:
        return [self.bucket]

    def forget_idle(self, now: float) -> bool:
        self.forgotten.append(now)
        return False


def request(api_key: int = 0) -> RequestView:
    return RequestView(api_key, 9, 1, "c", 100)


def counted(quota: Fixed) -> tuple[int, float]:
    return quota.bucket.throttled_requests, quota.bucket.throttle_seconds


@pytest.mark.parametrize(
    ("api_key", "seconds"), [(0, 1.0), (1, 2.0), (3, 0.0), (78, 2.0), (79, 0.0), (1000, 0.0), (-1, 0.0)]
)
def test_only_the_quotas_of_an_api_are_called(api_key: int, seconds: float) -> None:
    engine = QuotaEngine([Fixed((0,), admit=1.0), Fixed((1, 78), admit=2.0)])
    assert engine.admit(request(api_key), WHO, 0.0).throttle_seconds == seconds
    assert engine.covers(api_key) == (seconds > 0)


def test_a_quota_is_not_called_where_it_does_nothing() -> None:
    quota = Fixed((0, 1, 2), admit=1.0, charge=2.0, only_admits=(1,), only_charges=(2,))
    engine = QuotaEngine([quota])
    found = [
        (engine.admit(request(key), WHO, 0.0), engine.charge(request(key), RESPONSE, WHO, 0.0))
        for key in range(3)
    ]
    waits = [(admitted.throttle_seconds, charged.throttle_seconds) for admitted, charged in found]
    assert waits == [(1.0, 2.0), (1.0, 0.0), (0.0, 2.0)]
    assert all(engine.covers(key) for key in range(3))


def test_an_inactive_quota_is_not_called() -> None:
    idle, used = Fixed((0, 5), admit=3.0), Fixed((0,), admit=1.0)
    engine = QuotaEngine([idle, used])
    assert engine.covers(5)
    idle.active = False
    engine.configure(SOME, 0.0)
    assert not engine.covers(5)
    assert engine.admit(request(), WHO, 0.0).throttle_seconds == 1.0
    assert live_buckets(engine) == [used.bucket]
    idle.active = True
    engine.configure(SOME, 0.0)
    assert engine.admit(request(), WHO, 0.0).throttle_seconds == 3.0


def test_connections_wait_for_the_longest_and_only_its_bucket_counts_it() -> None:
    short, long = Fixed((), connect=1.0), Fixed((), connect=2.0)
    assert QuotaEngine([Fixed((0,))]).connect("10.0.0.1", 0.0).throttle_seconds == 0.0
    assert QuotaEngine([short, long]).connect("10.0.0.1", 10.0).throttle_seconds == 2.0
    assert (counted(short), counted(long)) == ((0, 0.0), (1, 2.0))
    assert long.bucket.throttled_until == 12.0


def test_exempt_clients_are_not_charged() -> None:
    quota = Fixed((0,), admit=1.0, charge=1.0, connect=1.0)
    engine = QuotaEngine([quota])
    engine.configure(Limits({}, settings=enforcement(exempt_users=["u"], exempt_cidrs=["10.0.0.0/8"])), 0.0)
    assert engine.admit(request(), WHO, 0.0) is ALLOW
    assert engine.charge(request(), RESPONSE, WHO, 0.0) is ALLOW
    assert engine.connect("10.0.0.1", 0.0).throttle_seconds == 0.0
    assert counted(quota) == (0, 0.0)
    assert engine.admit(request(), Identity("v", "c", "127.0.0.1"), 0.0).throttle_seconds == 1.0
    assert engine.connect("127.0.0.1", 0.0).throttle_seconds == 1.0


def test_a_verdict_of_an_observed_bucket_is_counted_and_not_enforced() -> None:
    observed = Fixed((0,), admit=2.0, charge=5.0, connect=3.0, mode=OBSERVE)
    enforced = Fixed((0,), admit=1.0)
    engine = QuotaEngine([observed, enforced])
    assert engine.connect("10.0.0.1", 0.0).throttle_seconds == 0.0
    assert engine.charge(request(), RESPONSE, WHO, 0.0).throttle_seconds == 0.0
    verdict = engine.admit(request(), WHO, 0.0)
    assert (verdict.throttle_seconds, verdict.bucket) == (1.0, enforced.bucket)
    assert (counted(observed), counted(enforced)) == ((3, 5.0), (1, 1.0))


def test_without_quotas_everything_passes() -> None:
    engine = QuotaEngine([])
    assert engine.admit(request(), WHO, 0.0) is ALLOW
    assert engine.charge(request(), RESPONSE, WHO, 0.0) is ALLOW
    assert not engine.covers(0)


def test_the_longest_wait_binds_and_only_its_bucket_counts_it() -> None:
    short, long = Fixed((0,), admit=1.0, charge=4.0), Fixed((0,), admit=2.0, charge=3.0)
    engine = QuotaEngine([short, long])
    verdict = engine.admit(request(), WHO, 10.0)
    assert (verdict.throttle_seconds, verdict.bucket) == (2.0, long.bucket)
    assert (counted(short), counted(long)) == ((0, 0.0), (1, 2.0))
    assert long.bucket.throttled_until == 12.0
    verdict = engine.charge(request(), RESPONSE, WHO, 20.0)
    assert (verdict.throttle_seconds, verdict.bucket) == (4.0, short.bucket)
    assert (counted(short), counted(long)) == ((1, 4.0), (1, 2.0))


def test_a_request_that_waits_twice_counts_once_and_with_the_longer_wait() -> None:
    early, late = Fixed((0,), admit=1.0), Fixed((0,), charge=1.5)
    engine = QuotaEngine([early, late])
    admitted = engine.admit(request(), WHO, 0.0)
    verdict = engine.charge(request(), RESPONSE, WHO, 0.0, admitted.throttle_seconds)
    assert (verdict.throttle_seconds, verdict.bucket) == (1.5, late.bucket)
    assert (counted(early), counted(late)) == ((1, 1.0), (0, 0.5))
    engine.charge(request(), RESPONSE, WHO, 0.0, 2.0)
    assert counted(late) == (0, 0.5)
    assert late.bucket.throttled_until == 1.5


def test_a_wait_before_the_response_is_not_counted_twice() -> None:
    late = Fixed((0,), charge=1.5)
    engine = QuotaEngine([late])
    engine.charge(request(), RESPONSE, WHO, 10.0, 11.0)
    assert counted(late) == (0, 0.5)
    engine.charge(request(), RESPONSE, WHO, 10.0, 9.0)
    assert counted(late) == (0, 2.0)
    assert late.bucket.throttled_until == 11.5


def test_no_wait_is_not_counted() -> None:
    quota = Fixed((0,))
    engine = QuotaEngine([quota])
    engine.admit(request(), WHO, 10.0)
    engine.charge(request(), RESPONSE, WHO, 10.0)
    assert counted(quota) == (0, 0.0)
    assert quota.bucket.throttled_until == 0.0


def test_all_quotas_are_configured_shown_and_swept() -> None:
    quotas = [Fixed((0,), "one"), Fixed((1,), "two")]
    engine = QuotaEngine([*quotas])
    engine.configure(SOME, 1.0)
    assert forget_idle(engine, 2.0) == 3, "each quota, and what belongs to none, has a step"
    assert [quota.configured for quota in quotas] == [[SOME], [SOME]]
    assert [quota.forgotten for quota in quotas] == [[2.0], [2.0]]
    assert [state.quota for state in bucket_states(engine, 3.0)] == ["one", "two"]


class Omitting(Quota):
    """Holds partition 1 of every topic back."""

    def __init__(self, omits: bool = True) -> None:
        super().__init__((1,))
        self.omits = omits

    def may_omit(self, topic: str, partition: int, replica_id: int, who: Identity) -> bool:
        return partition == 1

    def plan_consumer_fetch(self, plan: ConsumerPlan, who: Identity, now: float) -> None:
        for item in plan.items:
            if item.partition == 1:
                plan.omit(item, now + 2.0)

    def plan_follower_fetch(self, plan: FollowerPlan, who: Identity, now: float) -> None:
        plan.omit_more(3)


def test_only_quotas_that_omit_plan_fetches() -> None:
    engine = QuotaEngine([Fixed((1,)), Omitting(False)])
    assert not engine.omits
    assert not engine.may_omit("t", 1, -1, WHO)
    engine = QuotaEngine([Fixed((1,)), Omitting()])
    assert engine.omits
    assert engine.may_omit("t", 1, -1, WHO)
    assert not engine.may_omit("t", 0, -1, WHO)
    items = [ConsumerItem("t", partition, Watermarks()) for partition in (0, 1)]
    plan = ConsumerPlan(items)
    engine.plan_consumer_fetch(plan, WHO, 10.0)
    assert ([item.omitted for item in items], plan.ask_again_at) == ([False, True], 12.0)
    of_follower = FollowerPlan([], [], None)
    engine.plan_follower_fetch(of_follower, WHO, 10.0)
    assert of_follower.omitted == 3


def test_partitions_of_exempt_clients_are_not_omitted() -> None:
    engine = QuotaEngine([Omitting()])
    before = engine.generation
    engine.configure(Limits({}, settings=enforcement(exempt_users=[WHO.principal])), 0.0)
    assert engine.generation > before
    assert not engine.may_omit("t", 1, -1, WHO)


def test_waits_are_in_the_clients_usage() -> None:
    observed = Fixed((0,), "seen", admit=2.0, charge=5.0, mode=OBSERVE)
    enforced = Fixed((0,), "felt", admit=1.0, charge=0.5)
    engine = QuotaEngine([observed, enforced])
    ledger = UsageLedger()
    who = Identity("u", "c", "127.0.0.1", ledger.client(1, "u", "c"))
    engine.admit(request(), who, 10.0)
    engine.charge(request(), RESPONSE, who, 11.4, 11.5)
    [client] = ledger.close_interval()
    [used] = client.take()
    both = [counted(observed), counted(enforced)]
    assert used.tally.throttled_requests == sum(requests for requests, _ in both)
    assert used.tally.throttle_seconds == pytest.approx(sum(seconds for _, seconds in both))
    assert used.tally.quotas == {"seen": counted(observed)[1], "felt": pytest.approx(counted(enforced)[1])}
