"""The laws that every kind of quota obeys, whatever it counts."""

import pkgutil
from collections.abc import Iterator
from typing import Unpack

import pytest

import proxy.quota.kinds
from proxy.quota.engine import QuotaEngine
from proxy.quota.identity import DEFAULT, Identity, QuotaEntity
from proxy.quota.kinds import load_kinds
from proxy.quota.limits.enforcement import ENFORCE, OBSERVE, PACE, WINDOW
from proxy.quota.limits.limits import Limits
from proxy.quota.limits.resources import LONG
from proxy.quota.quota import DOUBLE, INT, PER_BROKER, PER_CLUSTER, Quota, QuotaKind
from proxy.quota.verdict import ALLOW, Verdict
from proxy.wire.edit import LENGTH_SIZE
from proxy.wire.views import RequestView, ResponseView
from tests.support.quotas.buckets import bucket_states, live_buckets
from tests.support.quotas.enforcement import EnforcementOptions, enforcement
from tests.support.quotas.forgetting import forget_idle

KINDS = load_kinds()
WHO = Identity("u", "c", "127.0.0.1")
LIMIT = 100.0
BURST = {PACE: 100, WINDOW: 1000}
"""What may be used at once at this limit; connections wait for more than a second's also with WINDOW."""
ASKED = [kind for kind in KINDS if kind.keys and not kind.build().intercepts]
"""The others are asked by whoever answers the requests, in words of their own, or are quotas of topics and
brokers; so are their tests.
"""
COUNTED = {"connection_creation"}
"""Kinds that charge 1 for each request or connection; the others charge bytes or time."""
every_kind = pytest.mark.parametrize("kind", ASKED, ids=[kind.name for kind in ASKED])
every_algorithm = pytest.mark.parametrize("algorithm", [PACE, WINDOW])


def quotas_of(
    kind: QuotaKind, value: float = LIMIT, who: str = DEFAULT
) -> dict[QuotaEntity, dict[str, float]]:
    """A quota of each of the kind's keys."""
    quotas: dict[QuotaEntity, dict[str, float]] = {}
    for key in kind.keys:
        entity = QuotaEntity(None, None, who) if key.for_ip else QuotaEntity(who, None)
        quotas.setdefault(entity, {})[key.name] = value
    return quotas


def limits_of(
    kind: QuotaKind,
    value: float = LIMIT,
    algorithm: str = PACE,
    who: str = DEFAULT,
    **settings: Unpack[EnforcementOptions],
) -> Limits:
    return Limits(quotas_of(kind, value, who), settings=enforcement(algorithm=algorithm, **settings))


def quota_of(kind: QuotaKind, limits: Limits) -> Quota:
    quota = kind.build()
    quota.configure(limits, 0.0)
    return quota


def engine_of(kind: QuotaKind, limits: Limits) -> QuotaEngine:
    engine = QuotaEngine([kind.build()])
    engine.configure(limits, 0.0)
    return engine


def exchanges(kind: QuotaKind, size: int) -> Iterator[tuple[RequestView, ResponseView]]:
    """As many requests as the kind has keys, and a response to each: of so many bytes as quotas count them,
    and so many percent of a second's work. Of a kind that counts requests: so many of them.
    """
    times = size if kind.name in COUNTED else 1
    for api_key in kind.build().api_keys[: len(kind.keys)] * times:
        response = ResponseView(9, True, size - LENGTH_SIZE)
        response.service_seconds = size / 100
        yield RequestView(api_key, 9, 1, "c", size), response


def burst_of(kind: QuotaKind, algorithm: str) -> int:
    return BURST[algorithm if kind.build().api_keys else PACE]


def use(kind: QuotaKind, quota: Quota, size: int, now: float = 0.0) -> list[Verdict]:
    """One use of each of the kind's quotas; returns the verdicts."""
    verdicts = []
    if not kind.build().api_keys:
        verdicts = [quota.connect(WHO.address, now) for _ in range(size)]
    for request, response in exchanges(kind, size):
        verdicts.append(quota.admit(request, WHO, now))
        verdicts.append(quota.charge(request, response, WHO, now))
    return verdicts


def pass_through(kind: QuotaKind, engine: QuotaEngine, size: int, now: float = 0.0) -> list[float]:
    """The same through an engine; returns the waits."""
    waits = []
    if not kind.build().api_keys:
        waits = [engine.connect(WHO.address, now).throttle_seconds for _ in range(size)]
    for request, response in exchanges(kind, size):
        waits.append(engine.admit(request, WHO, now).throttle_seconds)
        waits.append(engine.charge(request, response, WHO, now).throttle_seconds)
    return waits


def wait(verdicts: list[Verdict]) -> float:
    return max((verdict.throttle_seconds for verdict in verdicts), default=0.0)


def history(quota: Quota, now: float = 0.0) -> list[tuple[str, str, str, str, float]]:
    states = [bucket.state(now) for bucket in quota.live()]
    return [(state.quota, state.user, state.client_id, state.ip, state.rate) for state in states]


def test_the_folder_is_the_registry() -> None:
    files = [module.name for module in pkgutil.iter_modules(proxy.quota.kinds.__path__)]
    assert [kind.name for kind in KINDS] == sorted(files)


def test_a_key_belongs_to_one_kind() -> None:
    names = [key.name for kind in KINDS for key in kind.keys]
    names += [config.name for kind in KINDS for config in kind.configs]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("kind", KINDS, ids=[kind.name for kind in KINDS])
def test_a_kind_describes_itself(kind: QuotaKind) -> None:
    assert all(key.help.endswith(".") for key in kind.keys)
    assert kind.scope in (PER_BROKER, PER_CLUSTER)
    assert kind.keys or kind.configs
    assert {key.type for key in kind.keys} <= {LONG, INT, DOUBLE}


@every_kind
def test_no_limit_passes_and_records_nothing(kind: QuotaKind) -> None:
    for limits in (Limits({}), limits_of(kind, 1.0, who="10.0.0.1")):
        quota = quota_of(kind, limits)
        assert all(verdict is ALLOW for verdict in use(kind, quota, 2000))
        assert quota.live() == []


@every_kind
def test_before_it_is_configured_everything_passes(kind: QuotaKind) -> None:
    assert all(verdict is ALLOW for verdict in use(kind, kind.build(), 2000))


@every_kind
def test_it_is_active_while_an_entity_has_the_quota(kind: QuotaKind) -> None:
    quota = kind.build()
    assert not quota.active
    for limits in (limits_of(kind), limits_of(kind, who="10.0.0.1")):
        quota.configure(limits, 0.0)
        assert quota.active
        quota.configure(Limits({QuotaEntity("u", None): {"another": 1.0}}), 0.0)
        assert not quota.active


@every_kind
@every_algorithm
def test_combining_allow_with_allow_is_allow(kind: QuotaKind, algorithm: str) -> None:
    use(kind, quota_of(kind, limits_of(kind, algorithm=algorithm)), 2000)
    assert (ALLOW.throttle_seconds, ALLOW.bucket) == (0, None)


@every_kind
@every_algorithm
def test_a_verdict_that_does_not_pass_names_its_bucket(kind: QuotaKind, algorithm: str) -> None:
    quota = quota_of(kind, limits_of(kind, algorithm=algorithm))
    verdicts = use(kind, quota, 2000)
    assert not all(verdict is ALLOW for verdict in verdicts)
    assert all(verdict.bucket in quota.live() for verdict in verdicts if verdict is not ALLOW)


@every_kind
@every_algorithm
def test_a_wait_grows_with_the_excess(kind: QuotaKind, algorithm: str) -> None:
    limits, burst = limits_of(kind, algorithm=algorithm), burst_of(kind, algorithm)
    sizes = (0, 10, burst, burst + 5, burst + 50, burst * 2)
    waits = [wait(use(kind, quota_of(kind, limits), size)) for size in sizes]
    assert waits == sorted(waits)
    assert waits[2] == 0.0
    assert 0.0 < waits[3] < waits[4]


@every_kind
@every_algorithm
def test_a_wait_ends(kind: QuotaKind, algorithm: str) -> None:
    quota = quota_of(kind, limits_of(kind, algorithm=algorithm))
    assert wait(use(kind, quota, 2000)) > 0
    assert wait(use(kind, quota, 1, 1000.0)) == 0.0


@every_kind
@every_algorithm
def test_new_limits_keep_the_history(kind: QuotaKind, algorithm: str) -> None:
    quota = quota_of(kind, limits_of(kind, algorithm=algorithm))
    before = wait(use(kind, quota, burst_of(kind, algorithm) + 20))
    used = history(quota)
    quota.configure(limits_of(kind, algorithm=algorithm), 0.0)
    assert history(quota) == used
    quota.configure(limits_of(kind, LIMIT / 2, algorithm), 0.0)
    assert history(quota) == used
    assert {bucket.limit for bucket in quota.live()} == {LIMIT / 2}
    assert wait(use(kind, quota, 1)) > before > 0.0


@every_kind
def test_a_deleted_limit_is_gone_at_once_and_its_buckets_are_not_shown(kind: QuotaKind) -> None:
    quota = quota_of(kind, limits_of(kind))
    use(kind, quota, 2000)
    quota.configure(Limits({}), 0.0)
    assert all(verdict is ALLOW for verdict in use(kind, quota, 2000))
    assert quota.live() == []


@every_kind
def test_buckets_are_shown_once(kind: QuotaKind) -> None:
    quota = quota_of(kind, limits_of(kind))
    use(kind, quota, 2000)
    use(kind, quota, 2000, 1.0)
    names = [(bucket.quota, bucket.user, bucket.client_id, bucket.ip) for bucket in quota.live()]
    assert names
    assert len(names) == len(set(names))
    assert {name[0] for name in names} <= {key.name for key in kind.keys}


@every_kind
def test_showing_changes_nothing(kind: QuotaKind) -> None:
    watched, alone = quota_of(kind, limits_of(kind)), quota_of(kind, limits_of(kind))
    for now in (0.0, 0.5, 1.5, 2.0):
        history(watched, now + 0.25)
        assert wait(use(kind, watched, 70, now + 0.3)) == wait(use(kind, alone, 70, now + 0.3))


@every_kind
def test_idle_state_is_dropped(kind: QuotaKind) -> None:
    quota = quota_of(kind, limits_of(kind))
    use(kind, quota, 2000)
    forget_idle(quota, 3599.0)
    assert quota.live()
    forget_idle(quota, 3600.0)
    assert quota.live() == []
    assert wait(use(kind, quota, 1, 3600.0)) == 0.0
    assert quota.live()


@every_kind
@every_algorithm
def test_the_engine_counts_what_a_kind_throttles(kind: QuotaKind, algorithm: str) -> None:
    engine = engine_of(kind, limits_of(kind, algorithm=algorithm))
    waits = pass_through(kind, engine, burst_of(kind, algorithm) + 20)
    states = bucket_states(engine, 0.0)
    assert max(waits) > 0.0
    assert sum(state.throttled_requests for state in states) == sum(1 for seconds in waits if seconds > 0)
    assert sum(state.throttle_seconds for state in states) == pytest.approx(sum(waits))
    assert max(state.throttled_until for state in states) == pytest.approx(max(waits))
    assert {state.mode for state in states} == {ENFORCE}


@every_kind
@every_algorithm
def test_an_observed_quota_counts_as_if_enforced_and_lets_everything_pass(
    kind: QuotaKind, algorithm: str
) -> None:
    modes = {key.name: OBSERVE for key in kind.keys}
    observing = engine_of(kind, limits_of(kind, algorithm=algorithm, modes=modes))
    enforcing = engine_of(kind, limits_of(kind, algorithm=algorithm))
    size = burst_of(kind, algorithm) + (1 if kind.name in COUNTED else 20)
    waits = pass_through(kind, enforcing, size)
    assert max(waits) > 0.0
    assert pass_through(kind, observing, size) == [0.0] * len(waits)
    for observed, enforced in zip(bucket_states(observing, 0.0), bucket_states(enforcing, 0.0), strict=True):
        assert observed.mode == OBSERVE
        assert observed.rate == enforced.rate
        assert observed.throttled_requests == enforced.throttled_requests
        assert observed.throttle_seconds == pytest.approx(enforced.throttle_seconds)
        assert observed.throttled_until == pytest.approx(enforced.throttled_until)


@every_kind
@every_algorithm
def test_an_observed_quota_bounds_no_request(kind: QuotaKind, algorithm: str) -> None:
    engine = engine_of(kind, limits_of(kind, algorithm=algorithm, mode=OBSERVE))
    for request, response in exchanges(kind, 2000):
        assert engine.admit(request, WHO, 0.0) is ALLOW
        assert engine.charge(request, response, WHO, 0.0) is ALLOW


@every_kind
def test_observed_use_is_no_debt_once_enforced(kind: QuotaKind) -> None:
    engine = engine_of(kind, limits_of(kind, mode=OBSERVE))
    for _ in range(20):
        pass_through(kind, engine, 200)
    engine.configure(limits_of(kind), 0.0)
    assert max(pass_through(kind, engine, 50, 0.5), default=0.0) == pytest.approx(0.0)


EXEMPT = [{"exempt_cidrs": ["127.0.0.0/8"]}, {"exempt_users": ["u"]}, {"exempt_client_ids": ["c"]}]


@every_kind
@pytest.mark.parametrize("exempt", EXEMPT)
def test_exempt_clients_have_no_buckets(kind: QuotaKind, exempt: EnforcementOptions) -> None:
    if not kind.build().api_keys and "exempt_cidrs" not in exempt:
        return  # Nobody knows a new connection's user and client id.
    engine = engine_of(kind, limits_of(kind, **exempt))
    assert max(pass_through(kind, engine, 2000)) == 0.0
    assert live_buckets(engine) == []
    assert all(engine.admit(request, WHO, 0.0) is ALLOW for request, _ in exchanges(kind, 2000))
