"""Limits that came by changes are those that were made at once; networks against the standard library's."""

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from hypothesis import given
from hypothesis import strategies as st

from proxy.quota.identity import DEFAULT, Identity, QuotaEntity
from proxy.quota.limits.enforcement import UNLIMITED
from proxy.quota.limits.limits import Limits
from proxy.quota.limits.scopes import BROKER_SCOPE, CLUSTER_SCOPE, Scopes
from proxy.quota.measure.bucket import Bucket
from proxy.quota.measure.buckets import Buckets
from proxy.quota.measure.rate_rule import RateRule
from proxy.quota.networks import Networks, canonical_network, networks_around
from tests.support.quotas.enforcement import enforcement

KEYS = ["producer_byte_rate", "consumer_byte_rate", "connection_creation_rate"]
NAMES = ["a", "b", DEFAULT]
ADDRESSES = ["10.0.0.1", "10.0.1.1", "2001:db8::1"]
NETWORKS = ["10.0.0.0/8", "10.0.0.0/24", "0.0.0.0/0", "2001:db8::/32"]

ENTITIES = [
    *[QuotaEntity(user, client_id) for user in NAMES for client_id in [*NAMES, None]],
    *[QuotaEntity(None, client_id) for client_id in NAMES],
    *[QuotaEntity(None, None, ip) for ip in [*ADDRESSES, *NETWORKS, DEFAULT]],
]
ALONE = [entity for entity in ENTITIES if DEFAULT not in entity and "/" not in (entity.ip or "")]
Change = dict[QuotaEntity, dict[str, float | None]]
Shown = tuple[str | None, str | None, str | None, float]
"""The user, client id, address and limit of a bucket."""
values = st.dictionaries(st.sampled_from(KEYS), st.none() | st.integers(1, 9).map(float), max_size=3)
changes = st.lists(
    st.dictionaries(st.sampled_from(ENTITIES), values, max_size=4)
    | st.dictionaries(st.sampled_from(ALONE), values, max_size=4),
    max_size=6,
)


@given(changes)
def test_changes_one_after_another_are_the_limits_made_at_once(changes: list[Change]) -> None:
    limits = Limits({})
    quotas: dict[QuotaEntity, dict[str, float | None]] = {}
    for change in changes:
        limits = limits.with_changes(change)
        for entity, values in change.items():
            quotas.setdefault(entity, {}).update(values)
    kept = {
        entity: {key: value for key, value in values.items() if value is not None}
        for entity, values in quotas.items()
    }
    at_once = Limits(kept)
    for key in KEYS:
        assert limits.configured(key) == at_once.configured(key)
        for address in ADDRESSES:
            assert limits.ip_limit(key, address) == at_once.ip_limit(key, address)
        for user in ("a", "c"):
            for client_id in ("a", "c", ""):
                assert limits.bucket(key, user, client_id) == at_once.bucket(key, user, client_id)


@given(st.sets(st.sampled_from(NETWORKS + ADDRESSES)), st.sampled_from(ADDRESSES))
def test_the_most_specific_entity_of_an_address_has_its_limit(names: set[str], address: str) -> None:
    key = KEYS[2]
    quotas = {QuotaEntity(None, None, name): {key: 1.0 + index} for index, name in enumerate(sorted(names))}
    around = [name for name in names if ip_address(address) in ip_network(name)]
    most = max(around, key=lambda name: (ip_network(name).prefixlen, "/" not in name), default=None)
    wanted = UNLIMITED if most is None else 1.0 + sorted(names).index(most)
    assert Limits(quotas).ip_limit(key, address) == wanted


@given(st.ip_addresses(), st.integers(0, 128))
def test_the_network_around_an_address_is_the_standard_librarys(
    address: IPv4Address | IPv6Address, length: int
) -> None:
    if length <= address.max_prefixlen and getattr(address, "ipv4_mapped", None) is None:
        network = ip_network((address, length), strict=False)
        assert networks_around(str(address), [length]) == [str(network)]
        assert Networks([str(network)]).contain(str(address))
        assert canonical_network(str(network)) == str(network)
    else:
        assert networks_around(str(address), [129]) == []


@given(changes)
def test_buckets_follow_changes_as_if_they_had_been_made_with_the_last_limits(changes: list[Change]) -> None:
    key, rule, limits = KEYS[0], RateRule(burst_seconds=1.0), Limits({})
    followed = Buckets(key, limits, rule)
    asks = [Identity(user, client_id, "") for user in ("a", "c") for client_id in ("a", "c", "")]
    for change in changes:
        limits = limits.with_changes(change)
        followed.configure(limits, rule, 0.0)
        fresh = Buckets(key, limits, rule)
        for ours, theirs in [
            *[(followed.find(who, 0.0), fresh.find(who, 0.0)) for who in asks],
            *[(followed.find_ip(ip, 0.0), fresh.find_ip(ip, 0.0)) for ip in ADDRESSES],
        ]:
            assert _shown(ours) == _shown(theirs)


@given(changes, st.sampled_from([BROKER_SCOPE, CLUSTER_SCOPE]), st.sets(st.sampled_from(ENTITIES)))
def test_each_client_has_its_quota_in_exactly_one_scope(
    changes: list[Change], default: str, others: set[QuotaEntity]
) -> None:
    """The buckets of the two scopes together are those without scopes, also after changes."""
    key, rule, scopes = KEYS[0], RateRule(burst_seconds=1.0), Scopes(default, others)
    limits = Limits({}, settings=enforcement(scopes=scopes))
    followed = {scope: Buckets(key, limits, rule) for scope in (BROKER_SCOPE, CLUSTER_SCOPE)}
    for change in changes:
        limits = limits.with_changes(change)
        whole = Buckets(key, limits, rule)
        for scope, buckets in followed.items():
            buckets.configure(limits.within(scope), rule, 0.0)
        for user in ("a", "c"):
            for client_id in ("a", "c", ""):
                who = Identity(user, client_id, "")
                found = [_shown(buckets.find(who, 0.0)) for buckets in followed.values()]
                assert _limited(found) == _limited([_shown(whole.find(who, 0.0))])
        for ip in ADDRESSES:
            found = [_shown(buckets.find_ip(ip, 0.0)) for buckets in followed.values()]
            assert _limited(found) == _limited([_shown(whole.find_ip(ip, 0.0))])


def _limited(found: list[Shown | None]) -> list[Shown]:
    return [each for each in found if each]


def _shown(bucket: Bucket | None) -> Shown | None:
    return None if bucket is None else (bucket.user, bucket.client_id, bucket.ip, bucket.limit)
