"""QuotaEngines: which engine has which quotas, and what reaches all of them."""

from proxy.quota.cluster_view import ClusterView
from proxy.quota.engines import QuotaEngines
from proxy.quota.identity import DEFAULT, QuotaEntity
from proxy.quota.limits.limits import Limits
from proxy.quota.quota import LONG, PER_BROKER, PER_CLUSTER, Quota, QuotaKey, QuotaKind
from proxy.wire.addresses import BrokerAddress

SOME = Limits({QuotaEntity(DEFAULT, None): {"q": 1.0}})


class Recording(Quota):
    """Remembers its peers, and what it was told."""

    def __init__(self):
        super().__init__((0,))
        self.peers = []
        self.views = []
        self.limits = []
        self.forgotten = []

    def join(self, node_id, peers):
        super().join(node_id, peers)
        self.peers = list(peers)

    def see_cluster(self, view, now):
        self.views.append((view, now))

    def configure(self, limits, now):
        self.limits.append(limits)

    def forget_idle(self, now):
        self.forgotten.append(now)


def kind(scope=PER_BROKER):
    """A kind, and the list of its quotas as they are made."""
    made = []

    def build():
        made.append(Recording())
        return made[-1]

    keys = (QuotaKey("q", LONG),)
    return QuotaKind(name=scope, keys=keys, api_keys=(0,), scope=scope, build=build, help="For tests."), made


def test_each_broker_has_its_own_quotas_but_for_those_of_the_cluster():
    (broker, own), (cluster, shared) = kind(PER_BROKER), kind(PER_CLUSTER)
    engines = QuotaEngines([broker, cluster], SOME)
    one, two = engines.engine(1, 0.0), engines.engine(2, 0.0)
    assert engines.engine(1, 5.0) is one
    assert engines.engines() == {1: one, 2: two}
    assert len(own) == 2
    assert len(shared) == 1
    assert [quota.limits for quota in own] == [[SOME], [SOME]]


def test_a_change_of_limits_reaches_brokers_old_and_new():
    broker, made = kind()
    engines = QuotaEngines([broker], SOME)
    engines.engine(1, 0.0)
    more = Limits({})
    engines.configure(more, 1.0)
    engines.engine(2, 2.0)
    engines.forget_idle(3.0)
    assert [quota.limits for quota in made] == [[SOME, more], [more]]
    assert [quota.forgotten for quota in made] == [[3.0], [3.0]]


def test_quotas_join_their_broker_and_its_peers():
    (broker, own), (cluster, shared) = kind(PER_BROKER), kind(PER_CLUSTER)
    engines = QuotaEngines([broker, cluster], SOME)
    engines.engine(1, 0.0)
    engines.engine(2, 0.0)
    assert [quota.node_id for quota in own] == [1, 2]
    assert [quota.peers for quota in own] == [[], [own[0]]]
    assert [(quota.node_id, quota.peers) for quota in shared] == [(-1, [])]
    assert engines.of_kind(broker) == own


def test_every_quota_sees_the_cluster_also_those_that_come_later():
    broker, made = kind()
    engines = QuotaEngines([broker], SOME)
    view = ClusterView("c", {1: BrokerAddress(1, "h", 1)}, {})
    engines.see_cluster(view, 5.0)
    assert made[0].views[-1] == (view, 5.0)
    engines.engine(2, 7.0)
    assert made[1].views == [(view, 7.0)]


def test_partitions_are_wanted_while_a_quota_in_force_wants_them():
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
