"""Settings: defaults, and a sentence with the key for everything that a file can get wrong."""

from pathlib import Path
from textwrap import dedent

import pytest

from proxy.config.quotas import StoreTopic
from proxy.config.settings import Settings, file_quotas, load, split_address
from proxy.errors import SettingsError
from proxy.quota.identity import DEFAULT, Identity, QuotaEntity
from proxy.quota.limits.limits import OBSERVE, Limits
from tests.support.process.settings import SMALLEST, read, rejection

ROOT = Path(__file__).parents[3]


def limits(settings: Settings) -> Limits:
    """The file's quotas that last, as the engine takes them."""
    file = file_quotas(settings)
    return file.build({entity: dict(values) for entity, values in file.layer.lasting.items()})  # type: ignore[arg-type]


def test_smallest_file_gets_safe_defaults(tmp_path: Path) -> None:
    settings = read(tmp_path, SMALLEST)
    [listener] = settings.listeners
    assert (listener.name, listener.bind, listener.advertised_host) == ("clients", "127.0.0.1", "127.0.0.1")
    assert (listener.bootstrap_port, listener.broker_port_base) == (29092, 29100)
    assert listener.upstream.addresses == (("127.0.0.1", 19092),)
    assert (settings.admin.bind, settings.admin.port) == ("127.0.0.1", 9644)
    assert settings.limits.max_frame_bytes == 104857600
    assert settings.quotas.algorithm == "pace"
    assert limits(settings).configured("producer_byte_rate") == {}


def test_advertised_host_follows_bind(tmp_path: Path) -> None:
    text = "listeners: [{bind: 10.0.0.7, upstream: {bootstrap: [k:9092]}}]"
    assert read(tmp_path, text).listeners[0].advertised_host == "10.0.0.7"


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
    found = limits(read(tmp_path, SMALLEST + dedent(quotas)))
    assert found.configured("producer_byte_rate") == {QuotaEntity("alice", "billing"): 1048576.0}
    assert found.configured("consumer_byte_rate") == {QuotaEntity(None, DEFAULT): 20971520.0}
    assert (found.algorithm, found.burst_seconds, found.samples, found.window_seconds) == (
        "window",
        2.5,
        3,
        2,
    )


def test_rules_beside_the_quotas(tmp_path: Path) -> None:
    quotas = """
    quotas:
      max_throttle_seconds: 3
      mode: {producer_byte_rate: observe}
      exempt: {users: [root], client_ids: [probe], addresses: [10.0.0.0/8, "::1"]}
    """
    found = limits(read(tmp_path, SMALLEST + dedent(quotas)))
    assert found.max_throttle_seconds == 3
    assert (found.mode("producer_byte_rate"), found.mode("consumer_byte_rate")) == ("observe", "enforce")
    assert found.exempt(Identity("root", "", ""))
    assert found.exempt(Identity("", "probe", ""))
    assert found.exempt_address("10.1.2.3")
    assert found.exempt_address("::1")
    assert not found.exempt(Identity("user", "client", "192.0.2.1"))


def test_observe_all(tmp_path: Path) -> None:
    assert limits(read(tmp_path, SMALLEST + "quotas: {mode: observe}")).mode("producer_byte_rate") == OBSERVE


def test_the_store_is_a_topic_unless_it_is_none(tmp_path: Path) -> None:
    for text, store in (
        ("", StoreTopic()),
        ("quotas: {store: {topic: quotas}}", StoreTopic(topic="quotas")),
        ("quotas: {store: none}", "none"),
    ):
        assert read(tmp_path, SMALLEST + text).quotas.store == store


CONFIGURATIONS = sorted((ROOT / "config").glob("*.yaml")) + sorted((ROOT / "config/examples").glob("*.yaml"))


@pytest.mark.parametrize("file", CONFIGURATIONS, ids=lambda file: file.name)
def test_every_file_in_config_loads(file: Path) -> None:
    load(file)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "is empty; it takes at least a listener with upstream.bootstrap"),
        ("[1]", "expected a mapping, got a list"),
        ("{}", "listeners: has to be given"),
        ("listeners: []", "1: listeners: expected a list of length >= 1, got an empty list"),
        ("listeners: [{}]", "1: listeners[0].upstream: has to be given"),
        (SMALLEST + "admin:\n  port: 65536", "3: admin.port: expected int <= 65535, got 65536"),
        (SMALLEST + "admin:\n  port: '9644'", "3: admin.port: expected int, got '9644'"),
        (SMALLEST + "admin:\n  port:", "3: admin.port: expected int, got nothing"),
        (SMALLEST + "admin:", "2: admin: expected a mapping, got nothing"),
        (SMALLEST + "cluster: ''", "2: cluster: expected text of length >= 1, got ''"),
        (SMALLEST + "cluster: 7", "2: cluster: expected text, got 7"),
        (
            SMALLEST + "limits: {idle_seconds: .inf}",
            "2: limits.idle_seconds: expected float <= 86400.0, got inf",
        ),
        (
            SMALLEST + "limits: {drain_seconds: .nan}",
            "2: limits.drain_seconds: expected float >= 0.0, got nan",
        ),
        (SMALLEST + "metrics: {topic_partitions: 1}", "2: metrics.topic_partitions: expected bool, got 1"),
        (
            SMALLEST + "quotas: {algorithm: fast}",
            "2: quotas.algorithm: expected one of pace, window, got 'fast'",
        ),
        (
            SMALLEST + "quotas: {algorithm: true}",
            "2: quotas.algorithm: expected one of pace, window, got true",
        ),
        (
            SMALLEST + "quotas: {store: off}",
            "2: quotas.store: expected a mapping or none, got false",
        ),
        (
            SMALLEST + "quotas: {store: {topic: a/b}}",
            "2: quotas.store.topic: expected text matching regex '^[a-zA-Z0-9._-]{1,249}$', got 'a/b'",
        ),
        (
            SMALLEST + "quotas: {store: {topik: a}}",
            "2: quotas.store.topik: unknown key; did you mean topic?",
        ),
        (
            SMALLEST + "quotas: {mode: watch}",
            "2: quotas.mode: expected enforce or observe or a mapping, got 'watch'",
        ),
        (
            SMALLEST + "quotas: {mode: {producer_byte_rate: watch}}",
            "2: quotas.mode.producer_byte_rate: expected one of enforce, observe, got 'watch'",
        ),
        (
            SMALLEST + "quotas: {mode: {producer_byterate: observe}}",
            "2: quotas.mode.producer_byterate: unknown key; did you mean producer_byte_rate?",
        ),
        (
            SMALLEST + "quotas: {exempt: {addresses: [10.0.0.1, 10.0.0.1/8]}}",
            "2: quotas.exempt.addresses[1]: '10.0.0.1/8' has bits beyond its length; "
            "the network is 10.0.0.0/8; expected an address or a network such as 10.0.0.0/8",
        ),
        (SMALLEST + "admin: {prot: 1}", "2: admin.prot: unknown key; did you mean port?"),
        (
            SMALLEST + "admin: {xyz: 1}",
            "2: admin.xyz: unknown key; expected one of bind, port, tls, token_env, token_file",
        ),
        (SMALLEST + "admin: {true: 1}", "2: admin: the names of keys have to be text; put them in quotes"),
    ],
)
def test_wrong_shape_is_rejected_by_key(tmp_path: Path, text: str, expected: str) -> None:
    assert rejection(tmp_path, text) == expected


def test_error_names_file_line_and_key(tmp_path: Path) -> None:
    text = """
    listeners:
      - upstream: {bootstrap: [k:9092]}
        broker_port_base: abc
    """
    with pytest.raises(SettingsError) as caught:
        read(tmp_path, text)
    assert caught.value.key == ("listeners", 0, "broker_port_base")
    assert (caught.value.file, caught.value.line) == (tmp_path / "proxy.yaml", 4)
    assert str(caught.value).endswith("proxy.yaml:4: listeners[0].broker_port_base: expected int, got 'abc'")


@pytest.mark.parametrize(
    "address", ["k", "k:", ":9092", "k:0", "k:65536", "k:x", "http://k:9092", "::1:9092", "a b:1"]
)
def test_upstream_has_host_and_port(tmp_path: Path, address: str) -> None:
    message = rejection(tmp_path, f"listeners: [{{upstream: {{bootstrap: ['k:9092', '{address}']}}}}]")
    assert message == f"1: listeners[0].upstream.bootstrap[1]: expected HOST:PORT, got {address!r}"


def test_upstream_may_be_an_ipv6_address() -> None:
    assert split_address("[fd00::1]:9092") == ("fd00::1", 9092)


def test_upstream_is_not_the_proxy_itself(tmp_path: Path) -> None:
    message = rejection(tmp_path, "listeners: [{upstream: {bootstrap: ['127.0.0.1:29092']}}]")
    assert (
        message
        == "1: listeners[0].upstream.bootstrap[0]: 127.0.0.1:29092 is this proxy itself; expected a broker"
    )


def test_listener_names_differ(tmp_path: Path) -> None:
    one = "{upstream: {bootstrap: ['k:9092']}}"
    message = rejection(tmp_path, f"listeners: [{one}, {one}]")
    assert message == (
        "1: listeners[1].name: 'clients' is the name of listeners[0] too; give each listener its own"
    )


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_wildcard_is_never_advertised(tmp_path: Path, host: str) -> None:
    message = rejection(tmp_path, f"listeners: [{{bind: '{host}', upstream: {{bootstrap: ['k:9092']}}}}]")
    assert message == (
        f"1: listeners[0].advertised_host: no client can connect to {host}; "
        "set the host that clients shall use"
    )
    read(
        tmp_path, f"listeners: [{{bind: '{host}', advertised_host: a, upstream: {{bootstrap: ['k:9092']}}}}]"
    )


def test_callback(tmp_path: Path) -> None:
    callback = "proxy.quota_callback:QuotaCallback"
    settings = read(tmp_path, SMALLEST + f'quotas: {{callback: "{callback}", callback_error: closed}}')
    assert limits(settings).source is not None
    problem = rejection(tmp_path, SMALLEST + "quotas: {callback: nowhere:Class}")
    assert "quotas.callback: nowhere:Class cannot be made: ModuleNotFoundError" in problem
