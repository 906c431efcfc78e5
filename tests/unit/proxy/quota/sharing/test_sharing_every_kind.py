"""Two processes share each kind of limit: their engines are real, and clients send as much as they may.

Replication throttles have clients of another kind (quota/kinds/replication/test_kind_sharing.py), and so have
thresholds of brokers, which are averages over a minute (tests/property/test_shared_averages.py).
"""

from collections.abc import Callable
from random import Random
from typing import Final

import pytest

from proxy.quota.engines import QuotaEngines
from proxy.quota.identity import DEFAULT, Identity, QuotaEntity
from proxy.quota.kinds import load_kinds
from proxy.quota.kinds.controller_mutation import KIND as MUTATIONS
from proxy.quota.kinds.controller_mutation import ControllerMutation
from proxy.quota.limits.config_keys import (
    CONSUMER_BYTE_RATE,
    PRODUCER_BYTE_RATE,
    TOPIC_CONSUMER_BYTE_RATE,
    TOPIC_PRODUCER_BYTE_RATE,
)
from proxy.quota.limits.limits import Limits
from proxy.quota.limits.resources import Resources
from proxy.quota.limits.scopes import BROKER_SCOPE, CLUSTER_SCOPE, Scopes
from proxy.quota.measure.debt import Debt
from proxy.quota.sharing.local_uses import LocalUses
from proxy.quota.sharing.sharing import REPORT_SECONDS, Sharing
from proxy.quota.verdict import ALLOW, Verdict, combine
from proxy.wire.api_keys import API_VERSIONS, CREATE_TOPICS, FETCH, PRODUCE
from proxy.wire.edit import LENGTH_SIZE
from proxy.wire.views import RequestView, ResponseView
from tests.support.quotas.enforcement import enforcement
from tests.support.quotas.partition_quota import items
from tests.support.sharing.simulation import Log

STEP: Final = 0.01
REVIEW_SECONDS: Final = 0.2
JOINING: Final = 2.0
SETTLING: Final = 4.0
SECONDS: Final = 15.0
FIVE: Final = 5.0
APART: Final = 0.3
"""Seconds between the moments at which the processes read a change of the quotas."""
MOST: Final = 1.05
PER_SECOND: Final = 50
"""Each limit, in requests."""
BYTES: Final = 1000
TOPIC: Final = "orders"

Use = Callable[[QuotaEngines, Identity, int, float], tuple[float, Verdict]]
"""One request to a broker: the units that are admitted, and the wait until the next one."""


def produce(engines: QuotaEngines, who: Identity, node_id: int, now: float) -> tuple[float, Verdict]:
    request = RequestView(PRODUCE, 9, 1, who.client_id, BYTES)
    request.items = items(BYTES, topic=TOPIC)
    engine = engines.engine(node_id, now)
    admitted = engine.admit(request, who, now)
    appended = engine.charge(request, ResponseView(9, True, 100), who, now)
    return 1.0, combine(admitted, appended)


def fetch(engines: QuotaEngines, who: Identity, node_id: int, now: float) -> tuple[float, Verdict]:
    request = RequestView(FETCH, 12, 1, who.client_id, 100)
    response = ResponseView(12, True, BYTES - LENGTH_SIZE)
    response.items = items(BYTES, topic=TOPIC)
    return 1.0, engines.engine(node_id, now).charge(request, response, who, now)


def work(engines: QuotaEngines, who: Identity, node_id: int, now: float) -> tuple[float, Verdict]:
    """Keep a thread of the broker busy for 1 % of a second."""
    response = ResponseView(3, True, 100)
    response.service_seconds = 0.01
    request = RequestView(API_VERSIONS, 3, 1, who.client_id, 100)
    return 1.0, engines.engine(node_id, now).charge(request, response, who, now)


def connect(engines: QuotaEngines, who: Identity, node_id: int, now: float) -> tuple[float, Verdict]:
    verdict = engines.engine(node_id, now).connect(who.address, now)
    return float(not verdict.closes), verdict


def mutate(engines: QuotaEngines, who: Identity, node_id: int, now: float) -> tuple[float, Verdict]:
    assert engines.engine(node_id, now).intercepts(CREATE_TOPICS)
    quota = engines.shared(MUTATIONS)
    assert isinstance(quota, ControllerMutation)
    bucket = quota.bucket(who, now)
    assert bucket is not None
    admitted = quota.charge_strict(bucket, 1, now, who)
    return float(admitted), quota.throttle(bucket, now, who)


def of_clients(key: str, value: float, scope: str = BROKER_SCOPE) -> Limits:
    entity = QuotaEntity(None, None, DEFAULT) if key.startswith("connection") else QuotaEntity(DEFAULT, None)
    return Limits({entity: {key: value}}, settings=enforcement(mutation_samples=1, scopes=Scopes(scope)))


def of_topic(key: str) -> Limits:
    return Limits({}, resources=Resources({TOPIC: {key: str(PER_SECOND * BYTES)}}))


CASES: Final[dict[str, tuple[Use, Limits]]] = {
    "producer_byte_rate": (produce, of_clients("producer_byte_rate", PER_SECOND * BYTES)),
    "consumer_byte_rate": (fetch, of_clients("consumer_byte_rate", PER_SECOND * BYTES)),
    "request_percentage": (work, of_clients("request_percentage", PER_SECOND)),
    "connection_creation_rate": (connect, of_clients("connection_creation_rate", PER_SECOND)),
    PRODUCER_BYTE_RATE.name: (produce, of_topic(PRODUCER_BYTE_RATE.name)),
    CONSUMER_BYTE_RATE.name: (fetch, of_topic(CONSUMER_BYTE_RATE.name)),
}
"""What clients do, and its limit on each broker."""
OVER_BROKERS: Final[dict[str, tuple[Use, Limits]]] = {
    "producer_byte_rate": (produce, of_clients("producer_byte_rate", PER_SECOND * BYTES, CLUSTER_SCOPE)),
    "consumer_byte_rate": (fetch, of_clients("consumer_byte_rate", PER_SECOND * BYTES, CLUSTER_SCOPE)),
    "request_percentage": (work, of_clients("request_percentage", PER_SECOND, CLUSTER_SCOPE)),
    "connection_creation_rate": (connect, of_clients("connection_creation_rate", PER_SECOND, CLUSTER_SCOPE)),
    "controller_mutation_rate": (mutate, of_clients("controller_mutation_rate", PER_SECOND)),
    TOPIC_PRODUCER_BYTE_RATE.name: (produce, of_topic(TOPIC_PRODUCER_BYTE_RATE.name)),
    TOPIC_CONSUMER_BYTE_RATE.name: (fetch, of_topic(TOPIC_CONSUMER_BYTE_RATE.name)),
}
"""What clients do, and its limit over all brokers."""


class Proxy:
    """A process; its steps are those of LimitSharing."""

    def __init__(self, name: str, log: Log, limits: Limits) -> None:
        self.engines = QuotaEngines(load_kinds(), limits)
        self._log = log
        self._sharing = Sharing(name)
        self._uses = LocalUses()
        self._position = 0
        self._report_at = 0.0

    def step(self, now: float) -> None:
        while self._position < len(self._log.records):
            stamp, read = self._log.records[self._position]
            self._sharing.see(read, self._position, stamp)
            self._position += 1
        if now < self._report_at:
            return
        self._report_at = now + REPORT_SECONDS
        self._sharing.wake(now)
        self._uses.begin(now)
        if self._sharing.joined:
            self.engines.share_by(self._sharing)
        for node_id, quota in self.engines.active():
            self._uses.look(node_id, quota.shared_buckets(now), self._sharing, now, divide=True)
        report = self._sharing.report(self._uses.end(), now)
        if report is not None:
            self._log.send(report, now)


class Client:
    """A connection that sends its next request as soon as it may."""

    def __init__(self, proxy: Proxy, use: Use, number: int, node_id: int) -> None:
        self.admitted: list[tuple[float, float]] = []
        self.node_id = node_id
        self._proxy = proxy
        self._use = use
        self._who = Identity("u", f"c{number}", "10.0.0.1")
        self._debt: Debt | None = None
        self._ready_at = 0.0
        self._reviewed_at = 0.0

    def step(self, now: float) -> None:
        if self._debt is not None and (now >= self._ready_at or now >= self._reviewed_at + REVIEW_SECONDS):
            self._ready_at = self._debt.review(now)
            self._reviewed_at = now
        if now < self._ready_at:
            return
        self._debt = None
        units, verdict = self._use(self._proxy.engines, self._who, self.node_id, now)
        self.admitted.append((now, units))
        if verdict is not ALLOW and verdict.bucket is not None:
            self._ready_at = now + verdict.throttle_seconds
            self._debt = Debt(verdict.bucket, self._who, self._ready_at)
            self._reviewed_at = now


def run(
    use: Use,
    limits: Limits,
    comings: list[tuple[float, int, int]],
    brokers: tuple[int, ...],
    seconds: float,
    changes: tuple[tuple[float, Limits], ...] = (),
) -> list[Client]:
    """Two processes. `comings`: after how many seconds clients come, the index of their process, and their
    connections to each broker. `changes`: after how many seconds the limits change; the second process reads
    this APART later.
    """
    log = Log(Random(1))
    proxies = [Proxy(name, log, limits) for name in "ab"]
    clients: list[Client] = []
    left = sorted(comings)
    to_read = [
        (after + APART * index, index, changed) for after, changed in changes for index in range(len(proxies))
    ]
    now = 0.0
    while now < JOINING + seconds:
        while left and now >= JOINING + left[0][0]:
            _, index, connections = left.pop(0)
            for number in range(connections * len(brokers)):
                node_id = brokers[number % len(brokers)]
                clients.append(Client(proxies[index], use, number, node_id))
        while to_read and now >= JOINING + to_read[0][0]:
            _, index, changed = to_read.pop(0)
            proxies[index].engines.configure(changed, now)
        log.run(now)
        for proxy in proxies:
            proxy.step(now)
        for client in clients:
            client.step(now)
        now = round(now + STEP, 6)
    return clients


def admitted(use: Use, limits: Limits, connections: tuple[int, int], brokers: tuple[int, ...]) -> list[float]:
    """What two processes admit at each broker, as a part of the limit, from so many connections to it."""
    comings = [(0.0, index, connected) for index, connected in enumerate(connections)]
    found = dict.fromkeys(brokers, 0.0)
    for client in run(use, limits, comings, brokers, SETTLING + SECONDS):
        units = sum(units for at, units in client.admitted if at >= JOINING + SETTLING)
        found[client.node_id] += units / (PER_SECOND * SECONDS)
    return list(found.values())


@pytest.mark.parametrize("connections", [(1, 1), (2, 0), (5, 1)])
@pytest.mark.parametrize("name", CASES)
def test_a_limit_of_each_broker(name: str, connections: tuple[int, int]) -> None:
    use, limits = CASES[name]
    assert admitted(use, limits, connections, (1,)) == [pytest.approx(1.0, abs=0.02)]


@pytest.mark.parametrize("connections", [(1, 1), (2, 0), (5, 1)])
@pytest.mark.parametrize("name", OVER_BROKERS)
def test_a_limit_over_all_brokers(name: str, connections: tuple[int, int]) -> None:
    use, limits = OVER_BROKERS[name]
    assert sum(admitted(use, limits, connections, (1, 2))) == pytest.approx(1.0, abs=0.02)


@pytest.mark.parametrize("name", [*CASES, *(name for name in OVER_BROKERS if name not in CASES)])
def test_clients_that_come_to_the_other_process_have_no_burst_there(name: str) -> None:
    """The first process uses the whole limit, so only first requests are admitted at once."""
    use, limits = CASES[name] if name in CASES else OVER_BROKERS[name]
    came = JOINING + SETTLING + FIVE
    clients = run(use, limits, [(0.0, 0, 2), (SETTLING + FIVE, 1, 2)], (1,), SETTLING + 3 * FIVE)
    at_once = [units for client in clients[2:] for at, units in client.admitted if at < came + 5 * STEP]
    assert sum(at_once) <= 3.0, "a connection takes a token, of which there is always one"
    found = sorted(each for client in clients for each in client.admitted if each[0] >= JOINING + SETTLING)
    fives = [
        sum(units for at, units in found[first:] if at < begin + FIVE - STEP / 2)
        for first, (begin, _) in enumerate(found)
    ]
    assert max(fives) <= 1.05 * PER_SECOND * FIVE
    assert (
        sum(units for at, units in found if at >= JOINING + SETTLING + 2 * FIVE) >= 0.98 * PER_SECOND * FIVE
    )


def change_of(key: str, how: str) -> tuple[Limits, Limits, float]:
    """The limits before and after a change, and what all may use after it, at two brokers, per second."""
    value = PER_SECOND * (BYTES if key.endswith("byte_rate") else 1)
    usual, twice = of_clients(key, value), of_clients(key, 2 * value)
    cluster = of_clients(key, value, CLUSTER_SCOPE)
    return {
        "doubled": (usual, twice, 4.0 * PER_SECOND),
        "halved": (twice, usual, 2.0 * PER_SECOND),
        "scope: cluster": (usual, cluster, 1.0 * PER_SECOND),
        "scope: broker": (cluster, usual, 2.0 * PER_SECOND),
    }[how]


def five_after(clients: list[Client], since: float) -> float:
    """The most units per second in any five seconds that begin after a time."""
    found = sorted(each for client in clients for each in client.admitted if each[0] >= since)
    last = found[-1][0] - FIVE
    return max(
        sum(units for at, units in found[first:] if at < begin + FIVE - STEP / 2) / FIVE
        for first, (begin, _) in enumerate(found)
        if begin <= last
    )


@pytest.mark.parametrize("connections", [(1, 1), (5, 1)])
@pytest.mark.parametrize("how", ["doubled", "halved", "scope: cluster", "scope: broker"])
@pytest.mark.parametrize("name", ["producer_byte_rate", "request_percentage"])
def test_a_quota_changes_while_processes_share_it(name: str, how: str, connections: tuple[int, int]) -> None:
    before, after, rate = change_of(name, how)
    comings = [(0.0, index, connected) for index, connected in enumerate(connections)]
    changes = ((SETTLING + FIVE, after),)
    clients = run(CASES[name][0], before, comings, (1, 2), SETTLING + 4 * FIVE, changes)
    changed = JOINING + SETTLING + FIVE + APART
    assert five_after(clients, changed) <= MOST * rate
    late = [units for client in clients for at, units in client.admitted if at >= changed + FIVE]
    assert sum(late) / (2 * FIVE - APART) == pytest.approx(rate, rel=0.02)


def test_a_quota_that_is_removed_and_set_again_has_the_burst_of_one_process() -> None:
    name = "producer_byte_rate"
    limits, without = of_clients(name, PER_SECOND * BYTES), of_clients("consumer_byte_rate", 1e12)
    changes = ((SETTLING, without), (SETTLING + FIVE, limits))
    clients = run(CASES[name][0], limits, [(0.0, 0, 1), (0.0, 1, 1)], (1,), SETTLING + 5 * FIVE, changes)
    again = JOINING + SETTLING + FIVE + APART
    assert five_after(clients, again) <= MOST * PER_SECOND * (FIVE + 1.0) / FIVE
    assert five_after(clients, again + FIVE) <= MOST * PER_SECOND
