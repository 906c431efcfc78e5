"""QuotaEngines: which engine has which quotas, and what reaches all of them."""

import pytest

from proxy.quota.cluster_view import ClusterView
from proxy.quota.engines import ALL_BROKERS, QuotaEngines
from proxy.quota.identity import DEFAULT, Identity, QuotaEntity
from proxy.quota.kinds import load_kinds
from proxy.quota.kinds.client_bytes import KIND as CLIENT_BYTES
from proxy.quota.kinds.controller_mutation import KIND as CONTROLLER_MUTATION
from proxy.quota.kinds.controller_mutation import ControllerMutation
from proxy.quota.kinds.replication import KIND as REPLICATION
from proxy.quota.kinds.replication.kind import Replication
from proxy.quota.limits.config_keys import (
    LEADER_THROTTLED_RATE,
    LEADER_THROTTLED_REPLICAS,
    PRODUCER_BYTE_RATE,
    TOPIC_PRODUCER_BYTE_RATE,
)
from proxy.quota.limits.enforcement import PACE, UNLIMITED, WINDOW
from proxy.quota.limits.limits import Limits
from proxy.quota.limits.resources import LONG, Resources
from proxy.quota.limits.scopes import BROKER_SCOPE, CLUSTER_SCOPE, Scopes
from proxy.quota.quota import PER_BROKER, PER_CLUSTER, Quota, QuotaKey, QuotaKind
from proxy.quota.sharing.waterfill import RESERVE
from proxy.wire.addresses import BrokerAddress
from proxy.wire.api_keys import PRODUCE
from proxy.wire.cursor import NO_ID
from proxy.wire.views import Item, RequestView, ResponseView
from tests.support.present import present
from tests.support.quotas.buckets import live_by_node
from tests.support.quotas.enforcement import enforcement
from tests.support.quotas.forgetting import forget_idle
from tests.support.sharing.members import one_of

SOME = Limits({QuotaEntity(DEFAULT, None): {"q": 1.0}})


class Recording(Quota):
    """Remembers its peers, and what it was told."""

    def __init__(self) -> None:
        super().__init__((0,))
        self.peers: list[Quota] = []
        self.views: list[tuple[ClusterView, float]] = []
        self.configured: list[Limits] = []
        self.forgotten: list[float] = []

    def join(self, node_id: int, peers: list[Quota]) -> None:
        super().join(node_id, peers)
        self.peers = list(peers)

    def see_cluster(self, view: ClusterView, now: float) -> None:
        self.views.append((view, now))

    def configure(self, limits: Limits, now: float) -> None:
        self.configured.append(limits)

    def forget_idle(self, now: float) -> bool:
        self.forgotten.append(now)
        return False


def of_brokers(made: list[Recording]) -> list[Recording]:
    """The quotas that belong to one broker."""
    return [quota for quota in made if quota.node_id >= 0]


def kind(scope: str = PER_BROKER) -> tuple[QuotaKind, list[Recording]]:
    """A kind, and the list of its quotas as they are made."""
    made: list[Recording] = []

    def build() -> Recording:
        made.append(Recording())
        return made[-1]

    keys = (QuotaKey("q", LONG),)
    return QuotaKind(name=scope, keys=keys, scope=scope, build=build), made


def test_each_broker_has_its_own_quotas_but_for_those_of_the_cluster() -> None:
    (broker, own), (cluster, shared) = kind(PER_BROKER), kind(PER_CLUSTER)
    engines = QuotaEngines([broker, cluster], SOME)
    one, two = engines.engine(1, 0.0), engines.engine(2, 0.0)
    assert engines.engine(1, 5.0) is one
    assert engines.engines() == {1: one, 2: two}
    assert len(of_brokers(own)) == 2
    assert len(own) == 3
    assert len(shared) == 1
    assert [quota.configured for quota in of_brokers(own)] == [[SOME], [SOME]]


def test_a_change_of_limits_reaches_brokers_old_and_new() -> None:
    broker, made = kind()
    engines = QuotaEngines([broker], SOME)
    engines.engine(1, 0.0)
    more = Limits({})
    engines.configure(more, 1.0)
    engines.engine(2, 2.0)
    assert forget_idle(engines, 3.0) == sum(len(quotas) + 1 for quotas in ([1], [1], [], []))
    assert [quota.configured for quota in of_brokers(made)] == [[SOME, more], [more]]
    assert [quota.forgotten for quota in of_brokers(made)] == [[3.0], [3.0]]


def test_quotas_join_their_broker_and_its_peers() -> None:
    (broker, own), (cluster, shared) = kind(PER_BROKER), kind(PER_CLUSTER)
    engines = QuotaEngines([broker, cluster], SOME)
    engines.engine(1, 0.0)
    engines.engine(2, 0.0)
    own = of_brokers(own)
    assert [quota.node_id for quota in own] == [1, 2]
    assert [quota.peers for quota in own] == [[], [own[0]]]
    assert [(quota.node_id, quota.peers) for quota in shared] == [(-1, [])]
    assert engines.of_kind(broker) == own


def test_every_quota_sees_the_cluster_also_those_that_come_later() -> None:
    broker, made = kind()
    engines = QuotaEngines([broker], SOME)
    view = ClusterView("c", {1: BrokerAddress(1, "h", 1)}, {})
    engines.see_cluster(view, 5.0)
    assert made[0].views[-1] == (view, 5.0)
    engines.engine(2, 7.0)
    assert of_brokers(made)[1].views == [(view, 7.0)]


def test_partitions_are_wanted_while_a_quota_in_force_wants_them() -> None:
    broker, made = kind()
    engines = QuotaEngines([broker], SOME)
    assert not engines.wants_partitions
    engines.engine(1, 0.0)
    assert not engines.wants_partitions
    made[0].wants_partitions = True
    assert engines.wants_partitions
    made[0].active = False
    engines.configure(SOME, 1.0)
    assert not engines.wants_partitions


BROKERS = (1, 2, 3)
USER, OTHER = QuotaEntity("a", None), QuotaEntity("b", None)
RATE = 1000.0
QUOTAS = {
    USER: {"producer_byte_rate": RATE, "consumer_byte_rate": RATE, "request_percentage": RATE},
    OTHER: {"producer_byte_rate": RATE},
    QuotaEntity(None, None, DEFAULT): {"connection_creation_rate": 1.0},
}


def scoped(
    scope: str,
    *others: QuotaEntity,
    quotas: dict[QuotaEntity, dict[str, float]] = QUOTAS,
    algorithm: str = PACE,
) -> Limits:
    return Limits(quotas, settings=enforcement(scopes=Scopes(scope, others), algorithm=algorithm))


def produces(engines: QuotaEngines, node_id: int, size: int, now: float = 0.0, user: str = "a") -> float:
    """How long a producer with a connection of its own waits."""
    who = Identity(user, "c", "127.0.0.1")
    return engines.engine(node_id, now).admit(RequestView(0, 9, 1, "c", size), who, now).throttle_seconds


def tokens(engines: QuotaEngines, quota: str, now: float) -> dict[int, float]:
    """The tokens of each live bucket of a quota, by the broker."""
    live = live_by_node(engines)
    return {node_id: present(bucket.tokens).measure(now) for node_id, bucket in live if bucket.quota == quota}


def test_a_quota_of_the_cluster_is_one_limit_over_the_brokers() -> None:
    engines = QuotaEngines([CLIENT_BYTES], scoped(CLUSTER_SCOPE))
    waits = [produces(engines, node_id, 1000) for node_id in BROKERS]
    assert waits[0] == 0.0
    assert waits[1] > 0.0
    assert waits[2] > 0.0
    assert tokens(engines, "producer_byte_rate", 0.0) == {ALL_BROKERS: -2000.0}


def test_every_client_quota_may_be_of_the_cluster() -> None:
    engines = QuotaEngines(load_kinds(), scoped(CLUSTER_SCOPE))
    who = Identity("a", "c", "127.0.0.1")
    for node_id in BROKERS:
        engine = engines.engine(node_id, 0.0)
        produces(engines, node_id, 10)
        fetch, metadata = RequestView(1, 12, 1, "c", 100), RequestView(3, 9, 2, "c", 100)
        engine.charge(fetch, ResponseView(12, True, 100), who, 0.0)
        response = ResponseView(9, True, 100)
        response.service_seconds = 0.5
        engine.charge(metadata, response, who, 0.0)
        engine.connect("127.0.0.1", 0.0)
    found = {(bucket.quota, node_id): bucket.used for node_id, bucket in live_by_node(engines)}
    assert found == {
        ("producer_byte_rate", ALL_BROKERS): 30.0,
        ("consumer_byte_rate", ALL_BROKERS): 312.0,
        ("request_percentage", ALL_BROKERS): 150.0,
        ("connection_creation_rate", ALL_BROKERS): 3.0,
    }


def test_an_entity_may_have_its_own_scope() -> None:
    for scope, of_cluster, of_brokers in ((BROKER_SCOPE, "a", "b"), (CLUSTER_SCOPE, "b", "a")):
        engines = QuotaEngines([CLIENT_BYTES], scoped(scope, USER))
        for node_id in BROKERS:
            produces(engines, node_id, 10, user="a")
            produces(engines, node_id, 10, user="b")
        found = sorted((bucket.user, node_id) for node_id, bucket in live_by_node(engines))
        assert found == sorted([(of_cluster, ALL_BROKERS), *[(of_brokers, node_id) for node_id in BROKERS]])


def test_a_more_specific_quota_with_another_scope_takes_precedence() -> None:
    pair = QuotaEntity("a", "c")
    limits = scoped(
        CLUSTER_SCOPE, pair, quotas={USER: {"producer_byte_rate": 1.0}, pair: {"producer_byte_rate": RATE}}
    )
    engines = QuotaEngines([CLIENT_BYTES], limits)
    assert [produces(engines, node_id, 1000) for node_id in BROKERS] == [0.0, 0.0, 0.0]
    assert [node_id for node_id, _ in live_by_node(engines)] == [1, 2, 3]


@pytest.mark.parametrize(("before", "after"), [(1, 2), (2, 1)])
def test_a_change_of_scope_gives_no_burst(before: int, after: int) -> None:
    scope = {1: scoped(BROKER_SCOPE), 2: scoped(CLUSTER_SCOPE)}
    engines = QuotaEngines([CLIENT_BYTES], scope[before])
    for node_id in BROKERS:
        produces(engines, node_id, 1000)
    engines.configure(scope[after], 0.0)
    assert all(produces(engines, node_id, 1) > 0.0 for node_id in BROKERS)
    assert all(left < 0.0 for left in tokens(engines, "producer_byte_rate", 0.0).values())


def test_debts_to_all_brokers_remain_owed_if_the_scope_becomes_the_cluster() -> None:
    engines = QuotaEngines([CLIENT_BYTES], scoped(BROKER_SCOPE))
    for node_id in BROKERS:
        produces(engines, node_id, 3000)
    engines.configure(scoped(CLUSTER_SCOPE), 1.0)
    assert produces(engines, 1, 10, 1.0) >= 3.0
    assert tokens(engines, "producer_byte_rate", 1.0) == {ALL_BROKERS: -3010.0}
    # Their waiting connections have the debt.
    assert produces(engines, 2, 10, 4.1) <= 0.05
    assert tokens(engines, "producer_byte_rate", 4.1)[ALL_BROKERS] == pytest.approx(80.0)


def test_a_scope_that_changes_back_finds_what_was_used_meanwhile() -> None:
    engines = QuotaEngines([CLIENT_BYTES], scoped(BROKER_SCOPE))
    produces(engines, 1, 1)
    engines.configure(scoped(CLUSTER_SCOPE), 1.0)
    produces(engines, 1, 5000, 1.0)
    engines.configure(scoped(BROKER_SCOPE), 2.0)
    assert produces(engines, 1, 1, 2.0) >= 3.0
    assert produces(engines, 2, 1, 2.0) >= 3.0


def test_kafkas_window_does_not_forget_uses_if_the_scope_changes() -> None:
    engines = QuotaEngines([CLIENT_BYTES], scoped(BROKER_SCOPE, algorithm=WINDOW))
    for second in range(5):
        for node_id in BROKERS:
            produces(engines, node_id, 1000, float(second))
    engines.configure(scoped(CLUSTER_SCOPE, algorithm=WINDOW), 5.0)
    assert produces(engines, 1, 1000, 5.0) > 0.0
    assert [bucket.measure(5.0) for _, bucket in live_by_node(engines)] == [pytest.approx(1600.0)]


def test_a_client_that_owes_nothing_has_its_burst_after_a_change_of_scope() -> None:
    engines = QuotaEngines([CLIENT_BYTES], scoped(BROKER_SCOPE))
    produces(engines, 1, 1000)
    engines.configure(scoped(CLUSTER_SCOPE), 100.0)
    assert produces(engines, 1, 1000, 100.0) == 0.0


def test_a_quota_that_is_deleted_leaves_its_clients_to_one_of_the_other_scope() -> None:
    pair = QuotaEntity("a", "c")
    quotas = {QuotaEntity("a", DEFAULT): {"producer_byte_rate": RATE}, pair: {"producer_byte_rate": RATE}}
    limits = scoped(BROKER_SCOPE, pair, quotas=quotas)
    engines = QuotaEngines([CLIENT_BYTES], limits)
    produces(engines, 1, 3000)
    assert list(tokens(engines, "producer_byte_rate", 0.0)) == [ALL_BROKERS]
    engines.configure(limits.with_changes({pair: {"producer_byte_rate": None}}), 0.0)
    assert produces(engines, 1, 1) > 0.0
    assert tokens(engines, "producer_byte_rate", 0.0) == {1: -2001.0}


def test_the_bound_of_throttle_times_holds_for_all_engines_and_after_a_change_of_limits() -> None:
    engines = QuotaEngines(load_kinds(), Limits({}, settings=enforcement(max_throttle_seconds=3.0)))
    first, between = engines.engine(1, 0.0), engines.between_brokers(1, 0.0)
    engines.review_every(0.5)
    bounds = [engine.max_throttle_seconds for engine in (first, between, engines.engine(2, 0.0))]
    assert bounds == [0.5, 0.5, 0.5]
    engines.configure(Limits({}, settings=enforcement(max_throttle_seconds=0.25)), 0.0)
    assert first.max_throttle_seconds == 0.25, "the smaller one"
    engines.configure(Limits({}, settings=enforcement(max_throttle_seconds=2.0)), 0.0)
    assert first.max_throttle_seconds == 0.5
    engines.review_every(UNLIMITED)
    assert [first.max_throttle_seconds, between.max_throttle_seconds] == [2.0, 2.0]


def limits_of(engines: QuotaEngines) -> list[float]:
    """The limits of brokers' throttles, and of a client, that this process may use."""
    [replication] = engines.of_kind(REPLICATION)
    who = Identity("u", "c", "127.0.0.1")
    engines.engine(1, 0.0).admit(RequestView(PRODUCE, 9, 1, "c", 100), who, 0.0)
    [client] = [bucket for _, bucket in live_by_node(engines) if bucket.quota == "producer_byte_rate"]
    return [client.limit, *(bucket.limit for bucket in replication.shared_buckets(0.0))]


@pytest.mark.parametrize("throttled", [True, False])
def test_brokers_begin_with_the_reserve_until_the_process_has_joined(throttled: bool) -> None:
    """Also if no replica is throttled yet."""
    rate = {LEADER_THROTTLED_RATE.name: "1000"}
    lists = {LEADER_THROTTLED_REPLICAS.name: "*"} if throttled else {}
    client = {QuotaEntity(None, "c"): {"producer_byte_rate": 1000.0}}

    def joining() -> QuotaEngines:
        engines = QuotaEngines(load_kinds(), Limits(client, resources=Resources({"t": lists}, {"1": rate})))
        engines.begin_joining()
        engines.see_cluster(ClusterView("id", {1: BrokerAddress(1, "a", 1)}, {}), 0.0)
        [replication] = engines.of_kind(REPLICATION)
        assert isinstance(replication, Replication)
        replication.shared.report(0.0)
        assert limits_of(engines) == [1000.0, 1000.0 * RESERVE]
        return engines

    alone = joining()
    alone.use_whole(0.0)
    assert limits_of(alone) == [1000.0, 1000.0]
    joined = joining()
    joined.share_by(one_of(4))
    joined.use_whole(0.0)
    assert limits_of(joined) == [1000.0, 1000.0 * RESERVE], "until sharing gives it its part"


def test_every_new_bucket_of_a_shared_limit_begins_with_a_part() -> None:
    """Of client quotas, mutations and topics, at brokers that are known and at those that join."""
    resources = Resources(
        {"orders": {PRODUCER_BYTE_RATE.name: "1000", TOPIC_PRODUCER_BYTE_RATE.name: "1000"}}
    )
    entities = {
        QuotaEntity(None, "c"): dict.fromkeys(("producer_byte_rate", "controller_mutation_rate"), 1000.0)
    }
    limits = Limits(entities, resources=resources)
    engines = QuotaEngines(load_kinds(), limits)
    engines.engine(1, 0.0)
    engines.share_by(one_of(4))
    engines.engine(2, 0.0)
    who = Identity("u", "c", "127.0.0.1")
    mutations = engines.shared(CONTROLLER_MUTATION)
    assert isinstance(mutations, ControllerMutation)
    mutations.bucket(who, 0.0)
    request = RequestView(PRODUCE, 9, 1, "c", 100)
    request.items = [Item("orders", NO_ID, 0, 100)]
    for node_id in (1, 2):
        engines.engine(node_id, 0.0).admit(request, who, 0.0)
    found = sorted((bucket.quota, node_id, bucket.limit) for node_id, bucket in live_by_node(engines))
    assert found == [
        ("controller_mutation_rate", ALL_BROKERS, 250.0),
        ("producer.byte.rate", 1, 250.0),
        ("producer.byte.rate", 2, 250.0),
        ("producer_byte_rate", 1, 250.0),
        ("producer_byte_rate", 2, 250.0),
        ("topic.producer.byte.rate", ALL_BROKERS, 250.0),
    ]
