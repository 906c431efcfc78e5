"""The quotas of the configuration file, as the quota engine takes them, and what is rejected."""

from pathlib import Path
from textwrap import dedent

import pytest

from proxy.quota.identity import DEFAULT, Identity, QuotaEntity
from proxy.quota.limits.config_keys import PRODUCER_BYTE_RATE
from proxy.quota.limits.enforcement import OBSERVE, UNLIMITED
from proxy.quota.limits.limits import Limits
from proxy.quota.limits.topic_limits import topic_limit
from proxy.store.from_settings import load_configuration
from proxy.store.quota_records import Place, Setting
from proxy.store.quota_store import QuotaStore
from tests.support.process.settings import KINDS, SMALLEST, configuration, rejected_key, rejection

CONFIG = Path(__file__).parents[4] / "config"
RATE, SWITCH = "leader.replication.throttled.rate", "leader.replication.throttled"
REPLICATION = """
listeners:
  - {broker_port_count: 20, upstream: {bootstrap: ['k:9092']}}
  - {name: r, replication: true, broker_port_base: 29200, upstream: {brokers: {1: 'k:9094'}}}
"""


def limits(tmp_path: Path, quotas: str) -> Limits:
    """The lasting quotas of a file."""
    file = configuration(tmp_path, SMALLEST + dedent(quotas)).quotas
    return file.build({entity: dict(values) for entity, values in file.layer.lasting.items()})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "file",
    sorted([*CONFIG.glob("*.yaml"), *CONFIG.glob("examples/*.yaml")]),
    ids=lambda file: file.name,
)
def test_every_file_in_config_loads(file: Path) -> None:
    load_configuration(file, KINDS)


def test_there_are_files_in_config() -> None:
    assert list(CONFIG.glob("*.yaml"))
    assert list(CONFIG.glob("examples/*.yaml"))


def test_quotas_become_limits(tmp_path: Path) -> None:
    quotas = """
    quotas:
      algorithm: window
      burst_seconds: 2.5
      window_num: 3
      window_size_seconds: 2
      clients:
        - entity: {user: alice, client-id: billing}
          producer_byte_rate: 1048576
        - entity: {client-id: <default>}
          consumer_byte_rate: 20971520
    """
    found = limits(tmp_path, quotas)
    assert found.configured("producer_byte_rate") == {QuotaEntity("alice", "billing"): 1048576.0}
    assert found.configured("consumer_byte_rate") == {QuotaEntity(None, DEFAULT): 20971520.0}
    algorithm = found.settings.algorithm
    assert (algorithm.name, algorithm.burst_seconds) == ("window", 2.5)
    assert (algorithm.window.samples, algorithm.window.seconds) == (3, 2)


def test_modes_exemptions_and_maximum_throttle(tmp_path: Path) -> None:
    quotas = """
    quotas:
      max_throttle_seconds: 3
      mode: {producer_byte_rate: observe}
      exempt: {users: [root], client_ids: [probe], addresses: [10.0.0.0/8, "::1"]}
    """
    found = limits(tmp_path, quotas)
    assert found.settings.algorithm.max_throttle_seconds == 3
    assert (found.mode("producer_byte_rate"), found.mode("consumer_byte_rate")) == ("observe", "enforce")
    exemptions = found.settings.exemptions
    assert exemptions.exempt(Identity("root", "", ""))
    assert exemptions.exempt(Identity("", "probe", ""))
    assert exemptions.exempt_address("10.1.2.3")
    assert exemptions.exempt_address("::1")
    assert not exemptions.exempt(Identity("user", "client", "192.0.2.1"))


def test_one_mode_for_all_quotas(tmp_path: Path) -> None:
    assert limits(tmp_path, "quotas: {mode: observe}").mode("producer_byte_rate") == OBSERVE


def test_callback_becomes_the_source_of_limits(tmp_path: Path) -> None:
    callback = "proxy.quota_callback:QuotaCallback"
    assert limits(tmp_path, f'quotas: {{callback: "{callback}", callback_error: closed}}').source is not None
    error = rejection(tmp_path, SMALLEST + "quotas: {callback: nowhere:Class}")
    assert error.key == ("quotas", "callback")
    assert "ModuleNotFoundError" in error.expected


@pytest.mark.parametrize(
    ("quotas", "key"),
    [
        ("{mode: {producer_byte_rate: watch}}", ("mode", "producer_byte_rate")),
        ("{mode: {producer_byterate: observe}}", ("mode", "producer_byterate")),
        ("{exempt: {addresses: [10.0.0.1, 10.0.0.1/8]}}", ("exempt", "addresses", 1)),
        ("{clients: [{entity: {user: a}, speed: 1}]}", ("clients", 0, "speed")),
        ("{topics: {orders: {speed: 1}}}", ("topics", "orders", "speed")),
    ],
)
def test_mistake_in_quotas_is_rejected_by_its_key(tmp_path: Path, quotas: str, key: tuple[str, ...]) -> None:
    error = rejection(tmp_path, SMALLEST + f"quotas: {quotas}")
    assert error.key == ("quotas", *key)
    assert (error.file, error.line) == (tmp_path / "proxy.yaml", 2)


def test_scopes_of_entities(tmp_path: Path) -> None:
    quotas = """
    quotas:
      scope: cluster
      clients:
        - {entity: {user: a}, scope: broker, producer_byte_rate: 1}
        - {entity: {user: b}, scope: cluster, producer_byte_rate: 1}
    """
    scopes = limits(tmp_path, quotas).settings.scopes
    assert [scopes.of(QuotaEntity(user, None)) for user in "abc"] == ["broker", "cluster", "cluster"]
    assert limits(tmp_path, "").settings.scopes.of(QuotaEntity("a", None)) == "broker"
    wrong = SMALLEST + "quotas: {clients: [{entity: {user: a}, scope: proxy, producer_byte_rate: 1}]}"
    assert rejected_key(tmp_path, wrong) == ("quotas", "clients", 0, "scope")
    assert rejected_key(tmp_path, SMALLEST + "quotas: {scope: proxy}") == ("quotas", "scope")


async def test_a_reload_changes_the_scope_also_of_what_tools_set(tmp_path: Path) -> None:
    snapshots: list[Limits] = []
    text = "quotas: {clients: [{entity: {user: a}, producer_byte_rate: 1}]}"
    store = QuotaStore(configuration(tmp_path, SMALLEST + text).quotas, snapshots.append)
    alice, bob = QuotaEntity("a", None), QuotaEntity("b", None)
    store.read(
        [(Place(bob, "producer_byte_rate"), Setting(value=1.0, by="", client_id="", origin="", at_ms=0))]
    )
    for entry, of_alice, of_bob in (
        ("", "cluster", "cluster"),
        ("scope: broker, ", "broker", "cluster"),
        ("scope: cluster, ", "cluster", "cluster"),
    ):
        text = f"quotas: {{scope: cluster, clients: [{{entity: {{user: a}}, {entry}producer_byte_rate: 1}}]}}"
        await store.use_file(configuration(tmp_path, SMALLEST + text).quotas)
        for entity, scope in ((alice, of_alice), (bob, of_bob)):
            name = entity.user or ""
            assert snapshots[-1].within(scope).bucket("producer_byte_rate", name, "") == (name, "")
    count = len(snapshots)
    await store.use_file(configuration(tmp_path, SMALLEST + text).quotas)
    assert snapshots[count:] == []
    store.close()


def test_configs_of_topics_can_be_observed(tmp_path: Path) -> None:
    assert (
        limits(tmp_path, "quotas: {mode: {producer.byte.rate: observe}}").mode("producer.byte.rate")
        == OBSERVE
    )


@pytest.mark.parametrize(
    ("enforce", "ours", "forwarded"),
    [("", True, False), ("proxy", True, False), ("broker", False, False), ("both", True, True)],
)
def test_who_enforces_replication_quotas(tmp_path: Path, enforce: str, ours: bool, forwarded: bool) -> None:
    more = f"quotas: {{replication: {{enforce: {enforce}}}}}" if enforce else ""
    rules = configuration(tmp_path, REPLICATION + more).rules
    assert (RATE in rules.keys("broker"), RATE in rules.forwarded) == (ours, forwarded)
    assert SWITCH not in rules.forwarded, "no broker knows it"


def test_without_a_replication_listener_brokers_enforce_replication_quotas(tmp_path: Path) -> None:
    assert RATE not in configuration(tmp_path, SMALLEST).rules.keys("broker")
    quotas = f"quotas: {{brokers: {{1: {{{RATE}: 5}}}}}}"
    assert rejected_key(tmp_path, SMALLEST + quotas) == ("quotas", "brokers", "1", RATE)


def test_limits_know_the_proxys_topics_after_every_change(tmp_path: Path) -> None:
    text = SMALLEST + "quotas: {store: {topic: q}, topics: {<default>: {producer.byte.rate: 5}}}\n"
    store = QuotaStore(configuration(tmp_path, text).quotas, lambda limits: None)
    assert topic_limit(store.limits.resources, "q", PRODUCER_BYTE_RATE) == UNLIMITED
    assert topic_limit(store.limits.resources, "__quota_proxy_config", PRODUCER_BYTE_RATE) == 5


async def test_the_store_takes_a_changed_fate_of_deleted_topics(tmp_path: Path) -> None:
    store = QuotaStore(configuration(tmp_path, SMALLEST).quotas, lambda limits: None)
    assert not store.retains_deleted
    retain = SMALLEST + "quotas: {deleted_topic_configs: retain}\n"
    await store.use_file(configuration(tmp_path, retain).quotas)
    assert store.retains_deleted
    store.close()
