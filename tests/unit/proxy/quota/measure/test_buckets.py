from sys import getsizeof

import pytest

from proxy.quota.identity import DEFAULT, Identity, QuotaEntity
from proxy.quota.limits.limit_source import LimitSource, SourcedLimit
from proxy.quota.limits.limits import Limits
from proxy.quota.measure.bucket import IDLE_SECONDS
from proxy.quota.measure.buckets import BUCKETS_AT_MOST, FORGOTTEN_AT_MOST, NAME_BYTES_AT_MOST, Buckets
from proxy.quota.measure.rate_rule import RateRule
from tests.support.present import present
from tests.support.sharing.members import a_quarter

KEY = "producer_byte_rate"
RULE = RateRule(burst_seconds=1.0)
EACH_USER = {QuotaEntity(DEFAULT, None): {KEY: 1000.0}}


def buckets(quotas: dict[QuotaEntity, dict[str, float]]) -> Buckets:
    return Buckets(KEY, Limits(quotas), RULE)


LONG_AT_MOST = 1000
"""So many names as long as these have the bytes that all names may have. To make as many buckets as there may
be takes seconds.
"""


def long_name(number: int) -> str:
    """A name, of which LONG_AT_MOST take the room of all names."""
    name = str(number)
    return name.ljust(NAME_BYTES_AT_MOST // LONG_AT_MOST - getsizeof("") - 1)


CONNECTIONS: dict[tuple[str, str], Identity] = {}


@pytest.fixture(autouse=True)
def _new_connections() -> None:
    CONNECTIONS.clear()


def who(user: str = "u", client_id: str = "c") -> Identity:
    """The same connection, whenever it asks."""
    return CONNECTIONS.setdefault((user, client_id), Identity(user, client_id, "127.0.0.1"))


def names(found: Buckets) -> list[tuple[str, str, float]]:
    return sorted((bucket.user, bucket.client_id, bucket.limit) for bucket in found.live())


def test_a_client_without_a_quota_has_no_bucket() -> None:
    found = buckets({QuotaEntity("v", None): {KEY: 1000.0}})
    assert found.find(who("u"), 0.0) is None
    assert found.find(who("u"), 0.0) is None
    assert buckets({}).find(who("u"), 0.0) is None
    assert found.live() == []


def test_a_bucket_is_one_object_however_it_is_found() -> None:
    found = buckets(EACH_USER)
    bucket = present(found.find(who("u", "c"), 0.0))
    assert (bucket.quota, bucket.user, bucket.client_id, bucket.limit) == (KEY, "u", "", 1000.0)
    assert found.find(who("u", "c"), 1.0) is bucket
    assert found.find(Identity("u", "c", "127.0.0.2"), 1.0) is bucket
    assert found.find(who("u", "d"), 1.0) is bucket
    assert found.find(who("v", "c"), 1.0) is not bucket
    assert names(found) == [("u", "", 1000.0), ("v", "", 1000.0)]


def test_a_new_bucket_begins_with_its_part_of_a_shared_limit() -> None:
    found = buckets(EACH_USER)
    assert present(found.find(who("u"), 0.0)).record(1000.0, 0.0) == 0.0
    found.first_parts = a_quarter()
    bucket = present(found.find(who("v"), 0.0))
    assert (bucket.limit, bucket.whole_limit) == (250.0, 1000.0)
    assert bucket.record(1000.0, 0.0) == pytest.approx(3.0), "its first burst is a part, too"


def test_each_quota_has_a_bucket_of_its_own_for_a_connection() -> None:
    quotas = [buckets(EACH_USER) for _ in range(3)]
    found = [each.find(who(), 0.0) for each in quotas]
    assert len(set(map(id, found))) == 3
    assert [each.find(who(), 1.0) for each in quotas] == found


def test_a_changed_limit_applies_in_place() -> None:
    found = buckets(EACH_USER)
    bucket = present(found.find(who(), 0.0))
    bucket.record(3000, 0.0)
    found.configure(Limits({QuotaEntity(DEFAULT, None): {KEY: 500.0}}), RULE, 0.0)
    assert names(found) == [("u", "", 500.0)]
    assert found.find(who(), 0.0) is bucket
    assert bucket.record(0, 0.0) == 4.0


def test_a_new_rule_reaches_buckets_old_and_new() -> None:
    found = buckets(EACH_USER)
    found.find(who("u"), 0.0)
    found.configure(Limits(EACH_USER), RateRule(), 0.0)
    assert present(found.find(who("u"), 0.0)).tokens is None
    assert present(found.find(who("v"), 0.0)).tokens is None


def test_another_level_is_another_bucket_and_going_back_finds_the_old_one() -> None:
    found = buckets(EACH_USER)
    old = present(found.find(who(), 0.0))
    old.record(3000, 0.0)
    pair = {QuotaEntity("u", "c"): {KEY: 10.0}}
    found.configure(Limits(EACH_USER | pair), RULE, 0.0)
    new = present(found.find(who(), 0.0))
    assert (new.user, new.client_id, new.limit) == ("u", "c", 10.0)
    assert new.record(0, 0.0) == 0.0
    assert found.find(who("u", "d"), 0.0) is old
    found.configure(Limits(EACH_USER), RULE, 0.0)
    assert found.find(who(), 0.0) is old
    assert old.record(0, 0.0) == 2.0
    assert names(found) == [("u", "", 1000.0)]


def test_a_deleted_quota_limits_no_client_and_has_no_bucket() -> None:
    found = buckets(EACH_USER)
    bucket = found.find(who(), 0.0)
    found.configure(Limits({}), RULE, 0.0)
    assert found.find(who(), 0.0) is None
    assert found.live() == []
    found.configure(Limits(EACH_USER), RULE, 0.0)
    assert found.find(who(), 0.0) is bucket


def test_a_new_quota_reaches_a_client_that_had_none() -> None:
    found = buckets({QuotaEntity("v", None): {KEY: 1000.0}})
    assert found.find(who("u"), 0.0) is None
    found.configure(Limits(EACH_USER), RULE, 0.0)
    assert found.find(who("u"), 0.0) is not None


def test_idle_buckets_are_dropped_and_used_ones_stay() -> None:
    found = buckets(EACH_USER)
    idle, used = found.find(who("u"), 0.0), present(found.find(who("v"), 0.0))
    used.record(1, 1000.0)
    found.forget_idle(3600.0)
    assert names(found) == [("v", "", 1000.0)]
    assert found.find(who("v"), 3600.0) is used
    assert found.find(who("u"), 3600.0) is not idle


def test_another_quotas_change_leaves_all_as_it_is() -> None:
    limits = Limits(EACH_USER)
    found = Buckets(KEY, limits, RULE)
    bucket = present(found.find(who(), 0.0))
    bucket.whole_limit = 1.0
    found.configure(limits.with_changes({QuotaEntity("u", None): {"another": 5.0}}), RULE, 0.0)
    assert bucket.whole_limit == 1.0, "the bucket was configured anew"
    assert found.find(who(), 0.0) is bucket
    found.configure(limits.with_changes({QuotaEntity("v", None): {KEY: 5.0}}), RULE, 0.0)
    assert bucket.whole_limit == 1.0, "the bucket was configured anew"
    found.configure(Limits(EACH_USER), RULE, 0.0)
    assert bucket.whole_limit == 1000.0


# a change, and the buckets of (u, c), (u, d) and (v, c) after it: user, client id, limit
CHANGES = [
    ({QuotaEntity("u", None): 5.0}, [("u", "", 5.0), ("u", "", 5.0), ("v", "", 1000.0)]),
    ({QuotaEntity("u", "c"): 5.0}, [("u", "c", 5.0), ("u", "", 1000.0), ("v", "", 1000.0)]),
    ({QuotaEntity(None, "c"): 5.0}, [("u", "", 1000.0), ("u", "", 1000.0), ("v", "", 1000.0)]),
    ({QuotaEntity(DEFAULT, None): 5.0}, [("u", "", 5.0), ("u", "", 5.0), ("v", "", 5.0)]),
    ({QuotaEntity(DEFAULT, None): None}, [None, None, None]),
    (
        {QuotaEntity(DEFAULT, None): None, QuotaEntity(None, "c"): 5.0},
        [("", "c", 5.0), None, ("", "c", 5.0)],
    ),
    ({QuotaEntity("u", DEFAULT): 5.0}, [("u", "c", 5.0), ("u", "d", 5.0), ("v", "", 1000.0)]),
]


@pytest.mark.parametrize(("change", "expected"), CHANGES)
def test_a_change_reaches_whom_it_concerns_and_goes_back(
    change: dict[QuotaEntity, float | None], expected: list[tuple[str, str, float] | None]
) -> None:
    asks = [who("u", "c"), who("u", "d"), who("v", "c")]
    before = Limits(EACH_USER)
    found = Buckets(KEY, before, RULE)
    old = [found.find(client, 0.0) for client in asks]
    after = before.with_changes({entity: {KEY: value} for entity, value in change.items()})
    found.configure(after, RULE, 0.0)
    got = [found.find(client, 0.0) for client in asks]
    assert [bucket and (bucket.user, bucket.client_id, bucket.limit) for bucket in got] == expected
    back = {entity: {KEY: EACH_USER.get(entity, {}).get(KEY)} for entity in change}
    found.configure(after.with_changes(back), RULE, 0.0)
    assert [found.find(client, 0.0) for client in asks] == old
    assert {present(bucket).limit for bucket in old} == {1000.0}


@pytest.mark.parametrize("entity", [("u", "c"), ("u", None), (None, "c")])
def test_one_entitys_quota_takes_over_at_once_from_the_default(entity: tuple[str | None, str | None]) -> None:
    each_client = Limits({QuotaEntity(None, DEFAULT): {KEY: 1.0}})
    found = Buckets(KEY, each_client, RULE)
    assert present(found.find(who(), 0.0)).limit == 1.0
    found.configure(each_client.with_changes({QuotaEntity(*entity): {KEY: 5.0}}), RULE, 0.0)
    assert present(found.find(who(), 0.0)).limit == 5.0


def test_addresses_have_buckets_of_their_own() -> None:
    quotas = {QuotaEntity(None, None, DEFAULT): {KEY: 1.0}, QuotaEntity(None, None, "10.0.0.0/8"): {KEY: 2.0}}
    found = buckets(quotas | EACH_USER)
    one, other = present(found.find_ip("10.0.0.1", 0.0)), found.find_ip("10.0.0.2", 0.0)
    assert (one.user, one.client_id, one.ip, one.limit) == ("", "", "10.0.0.1", 2.0)
    assert other is not one
    assert found.find_ip("10.0.0.1", 1.0) is one
    assert present(found.find_ip("192.168.0.1", 0.0)).limit == 1.0
    assert present(found.find(who("10.0.0.1"), 0.0)).limit == 1000.0
    found.configure(Limits(EACH_USER), RULE, 0.0)
    assert found.find_ip("10.0.0.1", 0.0) is None
    assert names(found) == [("10.0.0.1", "", 1000.0)]


def test_any_is_set_while_an_entity_has_the_quota() -> None:
    found = buckets({})
    assert not found.any
    found.configure(Limits(EACH_USER), RULE, 0.0)
    assert found.any
    found.configure(Limits({}), RULE, 0.0)
    assert not found.any


def test_idle_buckets_are_dropped_some_at_a_time() -> None:
    found = buckets(EACH_USER)
    for number in range(FORGOTTEN_AT_MOST + 5):
        found.find(who(str(number)), 0.0)
    assert found.forget_idle(IDLE_SECONDS)
    assert len(found.live()) == 5
    assert not found.forget_idle(IDLE_SECONDS)
    assert found.live() == []


def test_a_debt_is_not_idle() -> None:
    found = buckets(EACH_USER)
    owes = present(found.find(who(), 0.0))
    owes.record(1000.0 * 2 * IDLE_SECONDS, 0.0)
    for now in (IDLE_SECONDS, 1.5 * IDLE_SECONDS):
        found.forget_idle(now)
        assert found.live() == [owes]
    found.forget_idle(3 * IDLE_SECONDS)
    assert found.live() == []


def test_names_that_clients_make_up_are_bounded() -> None:
    each = buckets({QuotaEntity(None, DEFAULT): {KEY: 1000.0}, QuotaEntity(None, None, DEFAULT): {KEY: 5.0}})
    kept = present(each.find(who(client_id="kept"), 0.0))
    idle = each.find(who(client_id="idle"), 0.0)
    for number in range(BUCKETS_AT_MOST + 10):
        now = float(number)
        each.find_ip(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}", now)
        if number % 1000 == 0:
            kept.record(1.0, now)
    found = each.live()
    assert len(found) == BUCKETS_AT_MOST
    # Those that are in use stay, and so does what they have used.
    assert each.find(who(client_id="kept"), now) is kept
    assert each.find(who(client_id="idle"), now) is not idle
    assert {bucket.ip for bucket in found} >= {"10.1.255.255", "10.2.0.5"}
    assert "10.0.0.5" not in {bucket.ip for bucket in found}


def test_names_that_clients_make_up_do_not_have_a_debt_forgotten() -> None:
    each = buckets({QuotaEntity(None, DEFAULT): {KEY: 1.0}})
    owes = present(each.find(who(client_id="owes"), 0.0))
    owes.record(1e6, 0.0)
    for number in range(2 * LONG_AT_MOST):
        each.find(who(client_id=long_name(number)), 1.0 + number / 1e6)
    assert each.find(who(client_id="owes"), 3.0) is owes
    assert len(each.live()) == LONG_AT_MOST + 1


def test_debts_are_forgotten_if_all_have_one() -> None:
    """The smallest one of those that are examined."""
    each = buckets({QuotaEntity(None, DEFAULT): {KEY: 1.0}})
    for number in range(LONG_AT_MOST):
        present(each.find(who(client_id=long_name(number)), 0.0)).record(1e6 - number, 0.0)
    assert len(each.live()) == LONG_AT_MOST
    largest = each.find(who(client_id=long_name(0)), 0.0)
    present(each.find(who(client_id=long_name(LONG_AT_MOST)), 0.0)).record(1e6, 0.0)
    assert len(each.live()) == LONG_AT_MOST
    assert largest in each.live()
    assert any(bucket.client_id == long_name(LONG_AT_MOST) for bucket in each.live())


def test_room_is_made_among_buckets_of_one_moment() -> None:
    """One for each new one: to drop many at once would stop the event loop."""
    each = buckets({QuotaEntity(None, None, DEFAULT): {KEY: 5.0}})
    for number in range(LONG_AT_MOST + 1):
        each.find_ip(long_name(number), 0.0)
    assert len(each.live()) == LONG_AT_MOST
    assert each.find_ip(long_name(LONG_AT_MOST), 0.0) in each.live()


def test_the_bytes_of_names_are_bounded_and_the_idle_ones_go_first() -> None:
    each = buckets(EACH_USER)
    size = 1 << 20
    kept = present(each.find(who("kept"), 0.0))
    number = 2 * NAME_BYTES_AT_MOST // size
    for user in range(number):
        each.find(who(f"{user}".ljust(size)), float(user))
        kept.record(1.0, float(user))
    found = each.live()
    assert sum(getsizeof(bucket.user) for bucket in found) <= NAME_BYTES_AT_MOST
    assert len(found) > NAME_BYTES_AT_MOST // size // 2
    assert kept in found
    newest = map(str, range(number - len(found) + 1, number))
    assert {bucket.user.strip() for bucket in found} == {"kept", *newest}


@pytest.mark.parametrize("filler", ["x", "é", "李", "\U0001f600"])
def test_the_memory_of_names_is_bounded_whatever_their_characters(filler: str) -> None:
    """A string takes one, two or four bytes for each of its characters."""
    each = buckets(EACH_USER)
    for number in range(3 * NAME_BYTES_AT_MOST // (1 << 20)):
        each.find(who(f"{filler}{number}".ljust(1 << 20)), float(number))
    found = sum(getsizeof(bucket.user) for bucket in each.live())
    assert NAME_BYTES_AT_MOST / 2 < found <= NAME_BYTES_AT_MOST


def test_look_ups_of_long_names_are_not_cached() -> None:
    """A bucket is found as well without the cache."""
    each = buckets(EACH_USER)
    for client_id in ("c" * 100, "c" * 1000):
        asks = who("u", client_id)
        assert each.find(asks, 0.0) is each.find(asks, 1.0) is not None
    assert [client[1][:101] for client in each._resolved] == ["c" * 100]


def test_a_name_that_is_larger_than_all_may_be_has_a_bucket() -> None:
    each = buckets(EACH_USER)
    for user in ("a", "b" * (NAME_BYTES_AT_MOST + 1), "c"):
        assert each.find(who(user), 0.0) is not None
    assert [bucket.user for bucket in each.live()] == ["c"]


class EachOwn(LimitSource):
    """Gives each client a limit of its own."""

    def find(
        self, key: str, user: str, client_id: str, now: float, topic: str = "", partition: int = -1
    ) -> SourcedLimit:
        return SourcedLimit(user, client_id, 1000.0)


def test_buckets_of_a_limit_source_are_bounded_too() -> None:
    each = Buckets(KEY, Limits({}, source=EachOwn()), RULE)
    for number in range(LONG_AT_MOST + 10):
        each.find(Identity("", long_name(number), "127.0.0.1"), float(number))
    assert len(each.live()) == LONG_AT_MOST
