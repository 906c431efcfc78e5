import pytest

from proxy.quota.identity import DEFAULT, QuotaEntity
from proxy.quota.limits import UNLIMITED, WINDOW, Limits

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


def limits_of(entities):
    return Limits({entity: {KEY: float(value)} for entity, value in entities.items()})


def resolve(limits, user, client_id, key=KEY):
    """The bucket's names and its limit; None where nothing limits."""
    names = limits.bucket(key, user, client_id)
    return None if names is None else (names, limits.limit(key, *names))


@pytest.mark.parametrize("level", range(8))
def test_the_first_level_that_has_a_quota_wins(level):
    limits = limits_of({entity: 1 + index for index, (entity, _) in enumerate(LEVELS) if index >= level})
    assert resolve(limits, "u", "c") == (LEVELS[level][1], 1 + level)


@pytest.mark.parametrize("level", range(8))
def test_each_level_alone(level):
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
def test_who_shares_a_bucket(entity, expected):
    limits = limits_of({entity: 5})
    letters = {None: "-"}
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
def test_an_empty_client_id_is_no_name(entities, expected):
    assert resolve(limits_of(entities), "u", "") == expected


def test_each_key_resolves_on_its_own():
    limits = Limits(
        {QuotaEntity("u", "c"): {KEY: 1.0}, QuotaEntity("u", None): {KEY: 3.0, "consumer_byte_rate": 33.0}}
    )
    assert resolve(limits, "u", "c") == (("u", "c"), 1.0)
    assert resolve(limits, "u", "c", "consumer_byte_rate") == (("u", ""), 33.0)
    assert resolve(limits, "u", "c", "request_percentage") is None


def test_a_user_called_default_in_kafkas_way_is_not_the_default():
    limits = limits_of({QuotaEntity("<default>", None): 1})
    assert resolve(limits, "u", "c") is None
    assert resolve(limits, "<default>", "c") == (("<default>", ""), 1)


def test_after_the_last_quota_of_a_kind_is_deleted_nothing_of_it_is_left():
    client_only = limits_of({QuotaEntity(None, DEFAULT): 8})
    both = limits_of({QuotaEntity(None, DEFAULT): 8, QuotaEntity("u", None): 3})
    assert resolve(both, "u", "c") == (("u", ""), 3)
    assert resolve(client_only, "u", "c") == (("", "c"), 8)
    assert resolve(both, "v", "c") == resolve(client_only, "v", "c")


@pytest.mark.parametrize(
    ("user", "client_id", "limited"), [("u", "c", True), ("admin", "c", False), ("u", "monitor", False)]
)
def test_the_exempt_have_no_limit(user, client_id, limited):
    limits = Limits({QuotaEntity(None, DEFAULT): {KEY: 8.0}}, "pace", 1.0, 11, 1.0, ["admin"], ["monitor"])
    assert (limits.bucket(KEY, user, client_id) is not None) == limited


def test_a_change_of_what_it_was_made_from_does_not_reach_it():
    quotas = {QuotaEntity("u", None): {KEY: 1.0}}
    limits = Limits(quotas)
    quotas[QuotaEntity("u", None)][KEY] = 2.0
    quotas.clear()
    assert resolve(limits, "u", "c") == (("u", ""), 1.0)
    assert limits.configured(KEY) == {QuotaEntity("u", None): 1.0}


def test_without_quotas_nothing_limits():
    limits = Limits({})
    assert limits.bucket(KEY, "u", "c") is None
    assert limits.limit(KEY, "u", "c") == UNLIMITED
    assert limits.configured(KEY) == {}


def test_the_rules_settings_are_kafkas_unless_given():
    limits = Limits({})
    assert (limits.algorithm, limits.burst_seconds, limits.samples, limits.window_seconds) == (
        "pace",
        1,
        11,
        1,
    )
    limits = Limits({}, WINDOW, 0.5, 3, 2)
    assert (limits.algorithm, limits.burst_seconds, limits.samples, limits.window_seconds) == (
        WINDOW,
        0.5,
        3,
        2,
    )


def test_an_unknown_algorithm_is_refused():
    with pytest.raises(ValueError, match="algorithm is 'wind'; it is pace or window"):
        Limits({}, "wind")
