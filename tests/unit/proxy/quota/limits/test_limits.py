import pytest

from proxy.quota.client_ids import represented
from proxy.quota.identity import DEFAULT, Identity, QuotaEntity
from proxy.quota.limits.enforcement import OBSERVE, UNLIMITED, WINDOW
from proxy.quota.limits.limit_source import LimitSource
from proxy.quota.limits.limits import Limits
from proxy.quota.limits.resources import NO_RESOURCES, Resources
from tests.support.present import present
from tests.support.quotas.enforcement import enforcement

LONG = "c" * 30_000
KEY = "producer_byte_rate"
# the entity of each level of precedence, and the bucket of user u with client id c
LEVELS = [
    (QuotaEntity("u", "c"), ("u", "c")),
    (QuotaEntity("u", DEFAULT), ("u", "c")),
    (QuotaEntity("u", None), ("u", "")),
    (QuotaEntity(DEFAULT, "c"), ("u", "c")),
    (QuotaEntity(DEFAULT, DEFAULT), ("u", "c")),
    (QuotaEntity(DEFAULT, None), ("u", "")),
    (QuotaEntity(None, "c"), ("", "c")),
    (QuotaEntity(None, DEFAULT), ("", "c")),
]


def limits_of(entities: dict[QuotaEntity, int]) -> Limits:
    return Limits({entity: {KEY: float(value)} for entity, value in entities.items()})


def resolve(
    limits: Limits, user: str, client_id: str, key: str = KEY
) -> tuple[tuple[str, str], float] | None:
    """The bucket's names and its limit; None where nothing limits."""
    names = limits.bucket(key, user, client_id)
    return None if names is None else (names, limits.limit(key, *names))


@pytest.mark.parametrize("level", range(8))
def test_the_first_level_that_has_a_quota_wins(level: int) -> None:
    limits = limits_of({entity: 1 + index for index, (entity, _) in enumerate(LEVELS) if index >= level})
    assert resolve(limits, "u", "c") == (LEVELS[level][1], 1 + level)


@pytest.mark.parametrize("level", range(8))
def test_each_level_alone(level: int) -> None:
    entity, names = LEVELS[level]
    assert resolve(limits_of({entity: 5}), "u", "c") == (names, 5)


# entity, then the buckets of (u, c), (u, d), (v, c), (v, d): a letter is a bucket, - is no limit
SHARING = [
    (QuotaEntity("u", "c"), "a---"),
    (QuotaEntity("u", DEFAULT), "ab--"),
    (QuotaEntity("u", None), "aa--"),
    (QuotaEntity(DEFAULT, "c"), "a-b-"),
    (QuotaEntity(DEFAULT, DEFAULT), "abcd"),
    (QuotaEntity(DEFAULT, None), "aabb"),
    (QuotaEntity(None, "c"), "a-a-"),
    (QuotaEntity(None, DEFAULT), "abab"),
]


@pytest.mark.parametrize(("entity", "expected"), SHARING, ids=[str(row[0]) for row in SHARING])
def test_who_shares_a_bucket(entity: QuotaEntity, expected: str) -> None:
    limits = limits_of({entity: 5})
    letters: dict[tuple[str, str] | None, str] = {None: "-"}
    drawn = ""
    for client in [("u", "c"), ("u", "d"), ("v", "c"), ("v", "d")]:
        names = limits.bucket(KEY, *client)
        drawn += letters.setdefault(names, "abcd"[len(letters) - 1])
    assert drawn == expected


# what is configured, what a client of user u with an empty client id gets
EMPTY_CLIENT_ID = [
    ({QuotaEntity("u", DEFAULT): 2}, None),
    ({QuotaEntity("u", DEFAULT): 2, QuotaEntity("u", None): 3}, (("u", ""), 3)),
    ({QuotaEntity("u", DEFAULT): 2, QuotaEntity(DEFAULT, None): 6}, (("u", ""), 6)),
    ({QuotaEntity("u", None): 3}, (("u", ""), 3)),
    ({QuotaEntity(DEFAULT, DEFAULT): 5}, None),
    ({QuotaEntity(DEFAULT, DEFAULT): 5, QuotaEntity(None, DEFAULT): 8}, None),
    ({QuotaEntity(DEFAULT, None): 6}, (("u", ""), 6)),
    ({QuotaEntity(None, "c"): 7, QuotaEntity(None, DEFAULT): 8}, None),
]


@pytest.mark.parametrize(("entities", "expected"), EMPTY_CLIENT_ID)
def test_an_empty_client_id_is_no_name(
    entities: dict[QuotaEntity, int], expected: tuple[tuple[str, str], int] | None
) -> None:
    assert resolve(limits_of(entities), "u", "") == expected


def test_each_key_resolves_on_its_own() -> None:
    limits = Limits(
        {QuotaEntity("u", "c"): {KEY: 1.0}, QuotaEntity("u", None): {KEY: 3.0, "consumer_byte_rate": 33.0}}
    )
    assert resolve(limits, "u", "c") == (("u", "c"), 1.0)
    assert resolve(limits, "u", "c", "consumer_byte_rate") == (("u", ""), 33.0)
    assert resolve(limits, "u", "c", "request_percentage") is None


def test_a_user_called_default_in_kafkas_way_is_not_the_default() -> None:
    limits = limits_of({QuotaEntity("<default>", None): 1})
    assert resolve(limits, "u", "c") is None
    assert resolve(limits, "<default>", "c") == (("<default>", ""), 1)


def test_after_the_last_quota_of_a_kind_is_deleted_nothing_of_it_is_left() -> None:
    client_only = limits_of({QuotaEntity(None, DEFAULT): 8})
    both = limits_of({QuotaEntity(None, DEFAULT): 8, QuotaEntity("u", None): 3})
    assert resolve(both, "u", "c") == (("u", ""), 3)
    assert resolve(client_only, "u", "c") == (("", "c"), 8)
    assert resolve(both, "v", "c") == resolve(client_only, "v", "c")


def test_a_change_of_what_it_was_made_from_does_not_reach_it() -> None:
    quotas = {QuotaEntity("u", None): {KEY: 1.0}}
    limits = Limits(quotas)
    quotas[QuotaEntity("u", None)][KEY] = 2.0
    quotas.clear()
    assert resolve(limits, "u", "c") == (("u", ""), 1.0)
    assert limits.configured(KEY) == {QuotaEntity("u", None): 1.0}


def test_without_quotas_nothing_limits() -> None:
    limits = Limits({})
    assert limits.bucket(KEY, "u", "c") is None
    assert limits.limit(KEY, "u", "c") == UNLIMITED
    assert limits.configured(KEY) == {}


# entities that have a quota, and what it is for an address in 10.1.0.0/16
ADDRESSES = [
    ([], UNLIMITED),
    (["10.1.2.3", "10.1.2.3/32", "10.1.0.0/16", "10.0.0.0/8", DEFAULT], 1),
    (["10.1.2.3/32", "10.1.0.0/16", "10.0.0.0/8", DEFAULT], 1),
    (["10.0.0.0/8", "10.1.0.0/16", DEFAULT], 2),
    (["10.2.0.0/16", "10.0.0.0/8"], 2),
    (["10.2.0.0/16", DEFAULT], 2),
    (["0.0.0.0/0", DEFAULT], 1),
    (["::/0"], UNLIMITED),
    (["10.1.2.4"], UNLIMITED),
]


@pytest.mark.parametrize(("names", "limit"), ADDRESSES)
def test_the_address_then_the_smallest_network_then_the_default(names: list[str], limit: float) -> None:
    quotas = {QuotaEntity(None, None, name): {KEY: 1.0 + index} for index, name in enumerate(names)}
    assert Limits(quotas).ip_limit(KEY, "10.1.2.3") == limit
    assert Limits({}).with_changes(quotas).ip_limit(KEY, "10.1.2.3") == limit


def test_quotas_of_clients_and_of_addresses_do_not_meet() -> None:
    limits = limits_of({QuotaEntity("10.0.0.1", None): 1, QuotaEntity(None, DEFAULT): 2})
    assert limits.ip_limit(KEY, "10.0.0.1") == UNLIMITED
    limits = limits_of({QuotaEntity(None, None, DEFAULT): 1})
    assert limits.bucket(KEY, "u", "c") is None
    assert limits.limit(KEY, "u", "c") == UNLIMITED


ALICE, BOB, NET = QuotaEntity("alice", None), QuotaEntity("bob", None), QuotaEntity(None, None, "10.0.0.0/8")
OTHER = "consumer_byte_rate"


def test_changes_set_and_remove() -> None:
    old = Limits({ALICE: {KEY: 1.0, OTHER: 2.0}, BOB: {KEY: 3.0}})
    new = old.with_changes({ALICE: {KEY: None, OTHER: 20.0}, NET: {KEY: 5.0}, BOB: {OTHER: None, "q": None}})
    assert new.configured(KEY) == {BOB: 3.0, NET: 5.0}
    assert new.configured(OTHER) == {ALICE: 20.0}
    assert new.configured("q") == {}
    assert new.ip_limit(KEY, "10.1.1.1") == 5.0
    assert new.with_changes({NET: {KEY: None}}).ip_limit(KEY, "10.1.1.1") == UNLIMITED


def test_changes_leave_the_old_limits_alone() -> None:
    old = Limits({ALICE: {KEY: 1.0}})
    old.with_changes({ALICE: {KEY: 2.0}, BOB: {KEY: 2.0}, NET: {KEY: 2.0}})
    assert old.configured(KEY) == {ALICE: 1.0}
    assert old.ip_limit(KEY, "10.1.1.1") == UNLIMITED


def test_quotas_of_other_keys_are_shared_with_the_old_limits() -> None:
    old = Limits({ALICE: {KEY: 1.0, OTHER: 2.0}})
    new = old.with_changes({ALICE: {KEY: 2.0}})
    assert new.configured(OTHER) is old.configured(OTHER)
    assert new.configured(KEY) is not old.configured(KEY)


def test_what_a_change_made_different_is_known_to_the_next() -> None:
    old = Limits({ALICE: {KEY: 1.0, OTHER: 2.0}})
    new = old.with_changes({ALICE: {KEY: 2.0}, BOB: {KEY: 2.0}})
    change = present(new.change_since(old, KEY))
    assert (change.entities, change.moved) == ([ALICE, BOB], {BOB})
    assert present(new.change_since(old, OTHER)).entities == []
    assert present(new.change_since(old, "q")).entities == []
    assert new.change_since(Limits({ALICE: {KEY: 1.0}}), KEY) is None
    assert old.change_since(new, KEY) is None
    assert new.with_changes({BOB: {KEY: None}}).change_since(old, KEY) is None


def test_changes_keep_the_settings_and_the_source() -> None:
    old = Limits({}, settings=enforcement(algorithm=WINDOW), source=LimitSource())
    for new in (old.with_changes({ALICE: {KEY: 2.0}}), old.with_resources(NO_RESOURCES)):
        assert (new.settings, new.source) == (old.settings, old.source)


def test_without_exemptions_all_else_stays() -> None:
    old = Limits({ALICE: {KEY: 1.0}}, settings=enforcement(exempt_users=["u"], mode=OBSERVE))
    new = old.without_exemptions()
    who = Identity("u", "c", "10.0.0.1")
    assert (old.settings.exemptions.exempt(who), new.settings.exemptions.exempt(who)) == (True, False)
    assert (new.mode(KEY), new.configured(KEY)) == (OBSERVE, {ALICE: 1.0})


def test_configs_of_topics_and_brokers_change_apart_from_quotas_of_clients() -> None:
    topics, others = Resources({"t": {"rate": "5"}}), Resources({"t": {"rate": "6"}})
    old = Limits(
        {ALICE: {KEY: 1.0}, NET: {KEY: 5.0}}, resources=topics, settings=enforcement(algorithm=WINDOW)
    )
    new = old.with_changes({ALICE: {KEY: 2.0}}).with_resources(others)
    assert Limits({}).resources is NO_RESOURCES
    assert old.resources is old.with_changes({}).resources is topics
    assert new.resources is others
    assert new.configured(KEY) == {ALICE: 2.0, NET: 5.0}
    assert (new.settings.algorithm.name, new.ip_limit(KEY, "10.1.1.1")) == (WINDOW, 5.0)


@pytest.mark.parametrize("configured", [LONG, represented(LONG)])
def test_a_quota_for_a_long_client_id_applies_to_it(configured: str) -> None:
    limits = Limits({QuotaEntity("u", configured): {"k": 5.0}, QuotaEntity("u", DEFAULT): {"k": 9.0}})
    assert limits.limit("k", "u", represented(LONG)) == 5.0
    assert limits.limit("k", "u", represented(LONG + "x")) == 9.0
    removed = limits.with_changes({QuotaEntity("u", LONG): {"k": None}})
    assert removed.limit("k", "u", represented(LONG)) == 9.0
