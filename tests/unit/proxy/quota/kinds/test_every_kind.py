"""The laws that every kind of quota obeys, whatever it counts."""

import pkgutil

import pytest

import proxy.quota.kinds
from proxy.quota.engine import QuotaEngine
from proxy.quota.identity import DEFAULT, Identity, QuotaEntity
from proxy.quota.kinds import load_kinds
from proxy.quota.limits import PACE, WINDOW, Limits
from proxy.quota.quota import DOUBLE, INT, LONG, PER_BROKER, PER_CLUSTER
from proxy.quota.verdict import PASS
from proxy.wire.views import RequestView, ResponseView

KINDS = load_kinds()
WHO = Identity("u", "c", "127.0.0.1")
every_kind = pytest.mark.parametrize("kind", KINDS, ids=[kind.name for kind in KINDS])
every_algorithm = pytest.mark.parametrize("algorithm", [PACE, WINDOW])


def limits_of(kind, value=1000.0, algorithm=PACE, who=DEFAULT):
    return Limits({QuotaEntity(who, None): {key.name: value for key in kind.keys}}, algorithm)


def quota_of(kind, limits):
    quota = kind.build()
    quota.configure(limits, 0.0)
    return quota


def use(quota, size, now=0.0):
    """One request of each API, and its response; returns the verdicts."""
    verdicts = []
    for api_key in quota.api_keys:
        request = RequestView(api_key, 9, 1, "c", size)
        verdicts.append(quota.admit(request, WHO, now))
        verdicts.append(quota.charge(request, ResponseView(9, True, size), WHO, now))
    return verdicts


def wait(verdicts):
    return max(verdict.throttle_seconds for verdict in verdicts)


def history(quota, now=0.0):
    return [(state.quota, state.user, state.client_id, state.rate) for state in quota.buckets(now)]


def test_the_folder_is_the_registry():
    files = [module.name for module in pkgutil.iter_modules(proxy.quota.kinds.__path__)]
    assert [kind.name for kind in KINDS] == sorted(files)


def test_a_key_belongs_to_one_kind():
    names = [key.name for kind in KINDS for key in kind.keys]
    assert len(names) == len(set(names))


@every_kind
def test_a_kind_says_what_it_is(kind):
    assert kind.help.endswith(".")
    assert kind.scope in (PER_BROKER, PER_CLUSTER)
    assert kind.keys
    assert {key.type for key in kind.keys} <= {LONG, INT, DOUBLE}
    assert kind.build().api_keys == kind.api_keys


@every_kind
def test_no_limit_passes_and_records_nothing(kind):
    for limits in (Limits({}), limits_of(kind, 1.0, who="somebody else")):
        quota = quota_of(kind, limits)
        assert all(verdict is PASS for verdict in use(quota, 10**9))
        assert quota.buckets(0.0) == []


@every_kind
def test_before_it_is_configured_everything_passes(kind):
    assert all(verdict is PASS for verdict in use(kind.build(), 10**9))


@every_kind
@every_algorithm
def test_pass_stays_as_it_is(kind, algorithm):
    use(quota_of(kind, limits_of(kind, algorithm=algorithm)), 10**6)
    assert (PASS.throttle_seconds, PASS.held, PASS.error_code, PASS.max_bytes, PASS.bucket) == (
        0,
        [],
        0,
        -1,
        None,
    )


@every_kind
@every_algorithm
def test_a_wait_grows_with_the_excess_and_names_its_bucket(kind, algorithm):
    waits = []
    for size in (0, 10, 1000, 20_000, 50_000, 10**6):
        verdicts = use(quota_of(kind, limits_of(kind, algorithm=algorithm)), size)
        waits.append(wait(verdicts))
        assert all(verdict.bucket is not None for verdict in verdicts if verdict.throttle_seconds > 0)
    assert waits == sorted(waits)
    assert waits[0] == 0.0
    assert waits[-2] < waits[-1]


@every_kind
@every_algorithm
def test_a_wait_ends(kind, algorithm):
    quota = quota_of(kind, limits_of(kind, algorithm=algorithm))
    assert wait(use(quota, 50_000)) > 0
    assert wait(use(quota, 0, 1000.0)) == 0.0


@every_kind
@every_algorithm
def test_new_limits_keep_the_history(kind, algorithm):
    quota = quota_of(kind, limits_of(kind, algorithm=algorithm))
    before = wait(use(quota, 50_000))
    used = history(quota)
    quota.configure(limits_of(kind, algorithm=algorithm), 0.0)
    assert history(quota) == used
    quota.configure(limits_of(kind, 500.0, algorithm), 0.0)
    assert history(quota) == used
    assert {state.limit for state in quota.buckets(0.0)} == {500.0}
    assert wait(use(quota, 0)) > before


@every_kind
def test_a_deleted_limit_is_gone_at_once_and_its_buckets_are_not_shown(kind):
    quota = quota_of(kind, limits_of(kind))
    use(quota, 50_000)
    quota.configure(Limits({}), 0.0)
    assert all(verdict is PASS for verdict in use(quota, 50_000))
    assert quota.buckets(0.0) == []


@every_kind
def test_buckets_are_shown_once(kind):
    quota = quota_of(kind, limits_of(kind))
    use(quota, 50_000)
    use(quota, 50_000, 1.0)
    names = [(state.quota, state.user, state.client_id) for state in quota.buckets(1.0)]
    assert names
    assert len(names) == len(set(names))
    assert {name for name, _, _ in names} <= {key.name for key in kind.keys}


@every_kind
def test_showing_changes_nothing(kind):
    watched, alone = quota_of(kind, limits_of(kind)), quota_of(kind, limits_of(kind))
    for now in (0.0, 0.5, 1.5, 2.0):
        watched.buckets(now + 0.25)
        assert wait(use(watched, 700, now + 0.3)) == wait(use(alone, 700, now + 0.3))


@every_kind
def test_the_idle_are_forgotten(kind):
    quota = quota_of(kind, limits_of(kind))
    use(quota, 50_000)
    quota.forget_idle(3599.0)
    assert quota.buckets(3599.0)
    quota.forget_idle(3600.0)
    assert quota.buckets(3600.0) == []


@every_kind
def test_the_engine_counts_what_a_kind_throttles(kind):
    quota = quota_of(kind, limits_of(kind))
    engine = QuotaEngine([quota])
    waits = []
    for api_key in kind.api_keys:
        request = RequestView(api_key, 9, 1, "c", 50_000)
        waits.append(engine.admit(request, WHO, 0.0).throttle_seconds)
        waits.append(engine.charge(request, ResponseView(9, True, 50_000), WHO, 0.0).throttle_seconds)
    states = engine.buckets(0.0)
    assert sum(state.throttled_requests for state in states) == sum(1 for seconds in waits if seconds > 0)
    assert sum(state.throttle_seconds for state in states) == pytest.approx(sum(waits))
    assert max(state.throttled_until for state in states) == pytest.approx(max(waits))
