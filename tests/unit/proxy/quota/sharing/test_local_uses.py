"""What this process's buckets used, and their parts."""

import pytest

from proxy.quota.identity import Identity
from proxy.quota.limits.enforcement import OBSERVE, UNLIMITED
from proxy.quota.measure.bucket import Bucket
from proxy.quota.measure.rate_rule import RateRule
from proxy.quota.sharing.local_uses import LocalUses, bucket_key, hold
from proxy.quota.sharing.reported_uses import LocalUse
from proxy.quota.sharing.reports import MAX_NAME, SATURATED, BucketReport, Report
from proxy.quota.sharing.sharing import Sharing
from proxy.quota.sharing.waiting import LONGEST_PAUSE

PACED = RateRule(burst_seconds=1.0)


def bucket(user: str = "u", rule: RateRule = PACED, client_id: str = "", limit: float = 100.0) -> Bucket:
    return Bucket(quota="q", limit=limit, rule=rule, now=0.0, user=user, client_id=client_id)


def look(
    uses: LocalUses, buckets: list[Bucket], now: float, sharing: Sharing | None = None
) -> list[LocalUse]:
    """A pass over the buckets, one at a time; with `sharing`, each gets its part."""
    uses.begin(now)
    for each in buckets:
        uses.look(1, [each], sharing or Sharing("a"), now, sharing is not None)
    return uses.end()


def two_processes() -> Sharing:
    """The view of process a, which has read 20 records of itself and of b."""
    sharing = Sharing("a")
    for number, name in enumerate(("a", "b") * 10):
        report = sharing.report([], number / 10) if name == "a" else None
        if report is None:
            report = Report(instance="b", number=number, read_to=number, buckets=[])
        sharing.see(report, number, number * 100)
    return sharing


def client(name: str) -> Identity:
    return Identity("u", name, "10.0.0.1")


def test_use_is_what_was_used_and_paid() -> None:
    uses, ours = LocalUses(), bucket()
    look(uses, [ours], 10.0)
    ours.record(250.0, 10.0, client("c"))
    [use] = look(uses, [ours], 10.5)
    # The bucket was full with 100, and 50 came in half a second: of 250, 100 are owed.
    assert use.used == pytest.approx(150.0)
    assert use.rate == pytest.approx(300.0)
    assert (use.limit, use.waiting) == (100.0, 1)


def test_connections_count_as_waiting_for_a_while() -> None:
    uses, ours = LocalUses(), bucket()
    for name in "abc":
        ours.record(100.0, 10.0, client(name))
    assert look(uses, [ours], 11.9)[0].waiting == 2
    assert look(uses, [ours], 12.5)[0].waiting == 2
    assert look(uses, [ours], 12.0 + LONGEST_PAUSE) == []


def test_a_wait_that_began_and_ended_between_two_looks_counts() -> None:
    uses, ours, sharing = LocalUses(), bucket(), two_processes()
    look(uses, [ours], 10.0, sharing)
    for fifth in range(1, 30):
        ours.record(0.1, 10.0 + fifth / 5)
        ours.count_throttle(0.01, 1, 10.0 + fifth / 5)
        [use] = look(uses, [ours], 10.1 + fifth / 5, sharing)
        assert use.waiting == 1
    found = [look(uses, [ours], 16.1 + fifth / 5, sharing) for fifth in range(2)]
    assert [len(each) for each in found] == [1, 0]


def test_a_request_of_a_client_that_seldom_sends_does_not_make_its_limit_hot() -> None:
    uses, ours, sharing = LocalUses(), bucket(), two_processes()
    look(uses, [ours], 9.0, sharing)
    for number in range(5):
        ours.record(40.0, 10.0 + 5 * number, client("c"))
        for fifth in range(1, 26):
            assert look(uses, [ours], 10.0 + 5 * number + fifth / 5, sharing) == []
    for second in range(3):
        ours.record(40.0, 40.0 + second, client("c"))
        found = look(uses, [ours], 40.5 + second, sharing)
    assert len(found) == 1, "40 of 50 in each second are more than a third"


def test_larger_parts_apply_between_two_passes() -> None:
    uses, ours, sharing = LocalUses(), bucket(), two_processes()
    ours.record(250.0, 10.0, client("c"))
    found = look(uses, [ours], 10.1, sharing)
    assert ours.limit == 50.0
    for offset in range(20, 24):
        report = sharing.report(found, 10.1 + offset) if offset % 2 == 0 else None
        b = Report(instance="b", number=offset, read_to=offset, buckets=[])
        sharing.see(report or b, offset, 2100)
    assert sharing.grown
    uses.divide(sharing, 10.2)
    assert ours.limit > 90.0


def test_connections_that_have_gone_do_not_count_because_others_wait() -> None:
    uses, ours = LocalUses(), bucket(limit=1000.0)
    stays, *go = [client(name) for name in "abcd"]
    for each in (*go, stays):
        ours.record(1000.0, 10.0, each)
    assert look(uses, [ours], 10.1)[0].waiting == 3
    for tenth in range(1, 50):
        ours.record(100.0, 10.1 + tenth / 10, stays)
        found = look(uses, [ours], 10.1 + tenth / 10)
    assert found[0].waiting == 1


def test_without_tokens_one_connection_waits() -> None:
    uses, ours = LocalUses(), bucket(rule=RateRule())
    ours.record(10_000.0, 10.0, client("c"))
    assert look(uses, [ours], 10.1)[0].waiting == 1


def test_idle_buckets_are_not_reported_until_they_are_used_again() -> None:
    uses, ours = LocalUses(), bucket()
    look(uses, [ours], 9.0)
    ours.record(50.0, 10.0, client("c"))
    rates = [[use.rate for use in look(uses, [ours], now)] for now in (10.0, 11.0, 12.0)]
    assert rates == [[50.0], [], []]
    ours.record(150.0, 12.5, client("c"))
    [use] = look(uses, [ours], 13.0)
    assert use.rate == pytest.approx(150.0)
    assert use.waiting == 0


def test_a_bucket_is_reported_until_the_others_know_that_it_is_idle() -> None:
    uses, ours = LocalUses(), bucket()
    sharing = two_processes()
    hot = BucketReport(key=bucket_key(1, ours), limit=100.0, used=0.0, demand=SATURATED, waiting=1)
    sharing.see(Report(instance="b", number=100, read_to=20, buckets=[hot]), 20, 2000)
    look(uses, [ours], 9.0, sharing)
    ours.record(0.1, 10.0)
    assert len(look(uses, [ours], 10.0, sharing)) == 1
    found = look(uses, [ours], 11.0, sharing)
    assert [len(look(uses, [ours], 11.0 + at, sharing)) for at in range(3)] == [1, 1, 1]
    sharing.report(found, 14.0)
    assert [len(look(uses, [ours], 15.0 + at, sharing)) for at in range(3)] == [1, 0, 0]
    sharing.lost += 1
    assert len(look(uses, [ours], 18.0, sharing)) == 1


def test_a_bucket_with_a_debt_is_not_idle() -> None:
    uses, ours = LocalUses(), bucket()
    ours.record(1000.0, 10.0, client("c"))
    assert [len(look(uses, [ours], 10.0 + at)) for at in range(9)] == [1] * 9


def test_the_average_of_a_broker_side_quota_is_its_demand() -> None:
    uses, ours = LocalUses(), bucket(rule=RateRule(averages=True))
    look(uses, [ours], 10.0)
    ours.record(400.0, 10.0)
    found = [look(uses, [ours], now) for now in (15.0, 16.0, 600.0)]
    assert [(use.rate, use.waiting) for use in found[0]] == [(80.0, 0)]
    assert [(use.rate, use.used) for use in found[1]] == [(80.0, 400.0)], "it has not changed since"
    assert found[2] == [], "almost nothing is left of it"
    ours.record(50_000.0, 600.0)
    [use] = look(uses, [ours], 606.0)
    assert use.waiting == 1, "it is over, so the process can use any share"


def test_some_buckets_are_not_shared() -> None:
    observed, unlimited, nothing = bucket(rule=RateRule(mode=OBSERVE)), bucket(), bucket(limit=0.0)
    unlimited.configure(UNLIMITED, PACED, 0.0)
    uses, buckets = LocalUses(), [observed, unlimited, nothing]
    look(uses, buckets, 9.0)
    for each in buckets:
        each.record(500.0, 9.5)
    assert look(uses, buckets, 10.0) == []


def test_each_bucket_gets_its_part() -> None:
    uses, sharing = LocalUses(), Sharing("a")
    ours, theirs = bucket("u"), bucket("v", rule=RateRule())
    for name in ("a", "b", "a", "b"):
        number = 2 if sharing.instances == 2 else 1
        sharing.see(Report(instance=name, number=number, read_to=9, buckets=[]), number, 1_000)
    look(uses, [ours, theirs], 10.0, sharing)
    assert (ours.limit, ours.whole_limit) == (50.0, 100.0)
    assert theirs.limit == 50.0


def test_a_pass_that_does_not_end_changes_no_rate() -> None:
    uses, ours = LocalUses(), bucket()
    look(uses, [ours], 9.0)
    ours.record(50.0, 9.5, client("c"))
    uses.begin(9.6)
    [use] = look(uses, [ours], 10.0)
    assert use.rate == pytest.approx(50.0 / 0.4)
    assert use.used == 50.0


def test_what_holds_after_a_failure() -> None:
    whole, third, observed = bucket(), bucket("v"), bucket(rule=RateRule(mode=OBSERVE))
    third.share(1 / 3, 0.0)
    hold([whole, third, observed], 0.5, 0.0)
    assert [each.limit for each in (whole, third, observed)] == [50.0, pytest.approx(100 / 3), 100.0]


def test_long_names_have_short_keys() -> None:
    keys = {bucket_key(1, bucket("ü" * size)) for size in (32_000, 32_001)}
    assert len(keys) == 2
    assert max(map(len, keys)) < MAX_NAME / 2


def test_names_do_not_run_together() -> None:
    keys = {
        bucket_key(1, bucket("a", client_id="b")),
        bucket_key(1, bucket("ab")),
        bucket_key(1, bucket("a1:b")),
        bucket_key(2, bucket("ab")),
        bucket_key(1, bucket("a", client_id="b,/1")),
    }
    assert len(keys) == 5


def test_the_use_before_the_last_look_is_known() -> None:
    uses, ours = LocalUses(), bucket(rule=RateRule())
    ours.record(2000.0, 9.0)
    [first] = look(uses, [ours], 10.0)
    ours.record(500.0, 10.5)
    [second] = look(uses, [ours], 11.0)
    assert [(use.used_before, use.used) for use in (first, second)] == [(0.0, 2000.0), (2000.0, 2500.0)]


def test_with_kafkas_window_a_bucket_is_closed_while_others_have_used_the_limit() -> None:
    sharing, paced, windowed = two_processes(), bucket("v"), bucket(rule=RateRule())
    for number, used in enumerate((0.0, 3000.0)):
        buckets = [
            BucketReport(key=bucket_key(1, each), limit=100.0, used=used, demand=SATURATED, waiting=1)
            for each in (paced, windowed)
        ]
        report = Report(instance="b", number=40 + number, read_to=20, buckets=buckets)
        sharing.see(report, 20 + number, 2000)
    look(LocalUses(), [paced, windowed], 2.0, sharing)
    assert paced.wait(2.0) == 0.0
    assert 10.0 < windowed.wait(2.0) <= RateRule().window.total_seconds, "at most for a window"
    assert windowed.wait(30.0) == 0.0


def test_of_a_bucket_that_does_not_divide_waits_the_mean_number_of_connections_counts() -> None:
    """Four connections wait for a second, again and again. No wait of request time is longer."""
    rule = RateRule(burst_seconds=1.0, max_throttle_seconds=1.0, max_debt_seconds=11.0)
    uses, ours, sharing = LocalUses(), bucket(rule=rule), two_processes()
    ours.count_throttle(3600.0, 3600, 9.0)
    counts = []
    for fifth in range(100):
        now = 10.0 + fifth / 5
        if fifth % 5 == 0:
            for _ in range(4):
                ours.count_throttle(ours.record(200.0, now), 1, now + 1.0)
        counts += [use.waiting for use in look(uses, [ours], now + 0.1, sharing)]
    assert counts[0] == 1
    assert set(counts[70:]) <= {4, 5}


def test_what_is_owed_is_reported_if_waits_are_bounded() -> None:
    bounded = RateRule(burst_seconds=1.0, max_throttle_seconds=1.0, max_debt_seconds=11.0)
    for rule, owed in ((bounded, 250.0), (PACED, 0.0)):
        uses, ours = LocalUses(), bucket(rule=rule)
        look(uses, [ours], 10.0)
        ours.record(350.0, 10.0)
        [use] = look(uses, [ours], 10.0)
        assert use.debt == pytest.approx(owed)


def test_a_client_that_waits_for_what_others_owe_is_no_demand() -> None:
    rule = RateRule(burst_seconds=1.0, max_throttle_seconds=1.0, max_debt_seconds=11.0)
    uses, ours, sharing = LocalUses(), bucket(rule=rule), two_processes()
    look(uses, [ours], 2.0, sharing)
    offset = 20
    for number, debt in ((20, 0.0), (21, 900.0)):
        of_b = BucketReport(
            key=bucket_key(1, ours), limit=100.0, used=0.0, demand=SATURATED, waiting=1, debt=debt
        )
        sharing.see(Report(instance="b", number=number, read_to=offset, buckets=[of_b]), offset, 2000)
        offset += 1
    look(uses, [ours], 2.2, sharing)
    assert ours.closed(2.2)
    seconds = ours.record(0.1, 2.2)
    assert seconds == 1.0
    ours.count_throttle(seconds, 1, 3.2)
    [use] = look(uses, [ours], 2.4, sharing)
    assert use.waiting == 0
