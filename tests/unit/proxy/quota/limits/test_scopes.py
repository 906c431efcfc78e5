from proxy.quota.client_ids import represented
from proxy.quota.identity import DEFAULT, QuotaEntity
from proxy.quota.limits.scopes import BROKER_SCOPE, CLUSTER_SCOPE, Scopes

ALICE, BOB = QuotaEntity("alice", None), QuotaEntity("bob", None)


def test_an_entity_has_the_default_scope_or_the_other_one() -> None:
    scopes = Scopes(BROKER_SCOPE, [ALICE])
    assert [scopes.of(entity) for entity in (ALICE, BOB)] == [CLUSTER_SCOPE, BROKER_SCOPE]
    scopes = Scopes(CLUSTER_SCOPE, [ALICE])
    assert [scopes.of(entity) for entity in (ALICE, BOB)] == [BROKER_SCOPE, CLUSTER_SCOPE]
    assert not Scopes(CLUSTER_SCOPE).mixed
    assert scopes.mixed


def test_a_long_client_id_is_found_as_requests_have_it() -> None:
    long = QuotaEntity(None, "c" * 5000)
    scopes = Scopes(BROKER_SCOPE, [long])
    assert scopes.of(QuotaEntity(None, represented("c" * 5000))) == CLUSTER_SCOPE
    assert not scopes.any(CLUSTER_SCOPE, {ALICE: 1.0})


def test_whether_any_entity_with_a_value_has_a_scope() -> None:
    scopes = Scopes(BROKER_SCOPE, [ALICE])
    assert scopes.any(CLUSTER_SCOPE, {ALICE: 1.0})
    assert not scopes.any(BROKER_SCOPE, {ALICE: 1.0})
    assert not scopes.any(CLUSTER_SCOPE, {BOB: 1.0})
    assert scopes.any(BROKER_SCOPE, {ALICE: 1.0, BOB: 1.0})
    assert not scopes.any(BROKER_SCOPE, {})


def test_scopes_are_the_same_if_every_entity_has_the_same() -> None:
    scopes = Scopes(BROKER_SCOPE, [ALICE, QuotaEntity(DEFAULT, None)])
    assert scopes.same(Scopes(BROKER_SCOPE, [QuotaEntity(DEFAULT, None), ALICE]))
    assert not scopes.same(Scopes(BROKER_SCOPE, [ALICE]))
    assert not scopes.same(Scopes(CLUSTER_SCOPE, [QuotaEntity(DEFAULT, None), ALICE]))
