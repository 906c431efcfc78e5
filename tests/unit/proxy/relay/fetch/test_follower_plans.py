from proxy.quota.engine import QuotaEngine
from proxy.quota.fetch.follower_plan import FollowerItem, FollowerPlan, SessionState
from proxy.quota.identity import Identity
from proxy.quota.limits.limits import Limits
from proxy.quota.quota import Quota
from proxy.relay.fetch.follower_plans import FollowerPlans
from proxy.wire.fetch.rewrite import Watermarks

WHO = Identity("ANONYMOUS", "", "127.0.0.1")
FOLLOWER = 2


class Watching(Quota):
    """Notes what plans are about."""

    def __init__(self) -> None:
        super().__init__((1,))
        self.omits = True
        self.plans: list[tuple[list[FollowerItem], list[FollowerItem], SessionState | None]] = []
        self.more: list[FollowerItem] = []
        """Items that the next plan includes."""

    def plan_follower_fetch(self, plan: FollowerPlan, who: Identity, now: float) -> None:
        self.plans.append((plan.items, plan.dropped, plan.state))
        if plan.state is None:
            plan.state = SessionState()
        for item in self.more:
            plan.include(item)


def item(partition: int) -> FollowerItem:
    return FollowerItem("t", partition, FOLLOWER, Watermarks(), (b"t", partition))


class Side:
    def __init__(self) -> None:
        self.quota = Watching()
        self.engine = QuotaEngine([self.quota])
        self.engine.configure(Limits({}), 0.0)
        self.plans = FollowerPlans()

    def plan(self, any_items: bool = True) -> FollowerPlan:
        return self.plans.plan(self.engine, WHO, 1.0, any_items=any_items)


def test_a_plan_is_about_what_has_changed_since_the_last_one() -> None:
    side = Side()
    one, two = item(1), item(2)
    for each in (one, two, one):
        side.plans.note(each)
    side.plan()
    side.plans.note(two)
    side.plans.drop(two)
    side.plan()
    side.plan()
    first, second, third = side.quota.plans
    assert first == ([one, two], [], None)
    assert second[:2] == ([], [two])
    assert third[:2] == ([], [])
    assert second[2] is third[2] is not None


def test_without_items_quotas_keep_nothing() -> None:
    side = Side()
    side.plans.note(item(1))
    side.plan()
    side.plan(any_items=False)
    side.plan()
    assert [state for _, _, state in side.quota.plans] == [None, None]


def test_what_plans_have_decided_stays_until_the_broker_is_told() -> None:
    side = Side()
    one, two, three = item(1), item(2), item(3)
    side.plans.note(one)
    side.plans.note(three)
    side.plan()
    side.quota.more = [two]
    side.plan()
    side.plans.drop(three)
    assert list(side.plans.decided) == [one.key, two.key]
