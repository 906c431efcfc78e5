"""Settings: defaults, and a sentence with the key for everything that a file can get wrong."""

from pathlib import Path
from textwrap import dedent

import pytest

from proxy.errors import SettingsError
from proxy.quota.identity import DEFAULT, Identity, QuotaEntity
from proxy.quota.limits import OBSERVE, Limits
from proxy.quotas_settings import StoreTopic
from proxy.settings import Settings, config_rules, file_quotas, load, split_address

ROOT = Path(__file__).parents[3]
SMALLEST = "listeners: [{upstream: {bootstrap: [127.0.0.1:19092]}}]\n"
EACH = "; give each its own"
KEPT = " are kept for brokers (base + node id)"
ADVICE = "; move one of them, or set broker_port_count to as many as this cluster needs"
TWO_LISTENERS = """
    listeners:
      - {{name: a, bootstrap_port: 29092, broker_port_base: 29100, upstream: {{bootstrap: [k:9092]}}}}
      - {{name: b, {second}, upstream: {{bootstrap: [k:9092]}}}}
    """


def read(tmp_path: Path, text: str) -> Settings:
    file = tmp_path / "proxy.yaml"
    file.write_text(dedent(text))
    return load(file)


def limits(settings: Settings) -> Limits:
    """The file's quotas that last, as the engine takes them."""
    file = file_quotas(settings)
    return file.build({entity: dict(values) for entity, values in file.layer.lasting.items()})  # type: ignore[arg-type]


def refusal(tmp_path: Path, text: str) -> str:
    """The sentence with which the file is refused, without the file's name."""
    with pytest.raises(SettingsError) as caught:
        read(tmp_path, text)
    return str(caught.value).removeprefix(str(tmp_path / "proxy.yaml")).removeprefix(":").strip()


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
def test_wrong_shape_is_refused_by_key(tmp_path: Path, text: str, expected: str) -> None:
    assert refusal(tmp_path, text) == expected


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
    message = refusal(tmp_path, f"listeners: [{{upstream: {{bootstrap: ['k:9092', '{address}']}}}}]")
    assert message == f"1: listeners[0].upstream.bootstrap[1]: expected HOST:PORT, got {address!r}"


def test_upstream_may_be_an_ipv6_address() -> None:
    assert split_address("[fd00::1]:9092") == ("fd00::1", 9092)


def test_upstream_is_not_the_proxy_itself(tmp_path: Path) -> None:
    message = refusal(tmp_path, "listeners: [{upstream: {bootstrap: ['127.0.0.1:29092']}}]")
    assert (
        message
        == "1: listeners[0].upstream.bootstrap[0]: 127.0.0.1:29092 is this proxy itself; expected a broker"
    )


def test_listener_names_differ(tmp_path: Path) -> None:
    one = "{upstream: {bootstrap: ['k:9092']}}"
    message = refusal(tmp_path, f"listeners: [{one}, {one}]")
    assert message == (
        "1: listeners[1].name: 'clients' is the name of listeners[0] too; give each listener its own"
    )


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_wildcard_is_never_advertised(tmp_path: Path, host: str) -> None:
    message = refusal(tmp_path, f"listeners: [{{bind: '{host}', upstream: {{bootstrap: ['k:9092']}}}}]")
    assert message == (
        f"1: listeners[0].advertised_host: no client can connect to {host}; "
        "set the host that clients shall use"
    )
    read(
        tmp_path, f"listeners: [{{bind: '{host}', advertised_host: a, upstream: {{bootstrap: ['k:9092']}}}}]"
    )


class TestPorts:
    @pytest.mark.parametrize(
        ("second", "expected"),
        [
            (
                "bootstrap_port: 29092, broker_port_base: 29200",
                f"listeners[1].bootstrap_port: port 29092 is listeners[0].bootstrap_port too{EACH}",
            ),
            (
                "bootstrap_port: 29093, broker_port_base: 29100",
                f"listeners[1].broker_port_base: port 29100 is listeners[0].broker_port_base too{EACH}",
            ),
            (
                "bootstrap_port: 9644, broker_port_base: 29200",
                f"listeners[1].bootstrap_port: port 9644 is admin.port too{EACH}",
            ),
            (
                "bootstrap_port: 29105, broker_port_base: 29200",
                f"listeners[0].broker_port_base: ports 29100 to 29109{KEPT}, but "
                f"29105 is listeners[1].bootstrap_port{ADVICE}",
            ),
            (
                "bootstrap_port: 29093, broker_port_base: 29109",
                f"listeners[0].broker_port_base: ports 29100 to 29109{KEPT}, but "
                f"29109 is listeners[1].broker_port_base{ADVICE}",
            ),
            (
                "bind: 0.0.0.0, advertised_host: h, bootstrap_port: 29092, broker_port_base: 29200",
                f"listeners[1].bootstrap_port: port 29092 is listeners[0].bootstrap_port too{EACH}",
            ),
            (
                "bind: localhost, bootstrap_port: 29092, broker_port_base: 29200",
                f"listeners[1].bootstrap_port: port 29092 is listeners[0].bootstrap_port too{EACH}",
            ),
            (
                "bootstrap_port: 29093, broker_port_base: 65527",
                f"listeners[1].broker_port_base: ports 65527 to 65536{KEPT}, but "
                "65535 is the last; lower the base",
            ),
            (
                "bootstrap_port: 29093, broker_port_base: 0, broker_port_count: 3",
                "listeners[1].broker_port_count: means nothing where broker_port_base is 0",
            ),
        ],
    )
    def test_overlap_names_both_sides(self, tmp_path: Path, second: str, expected: str) -> None:
        message = refusal(tmp_path, TWO_LISTENERS.format(second=second))
        assert message.partition(" ")[2] == expected

    @pytest.mark.parametrize(
        "second",
        [
            "bind: 127.0.0.2, bootstrap_port: 29092, broker_port_base: 29100",
            "bootstrap_port: 29192, broker_port_base: 29200",
            "bootstrap_port: 29192, broker_port_base: 65526",
            "bootstrap_port: 0, broker_port_base: 0",
        ],
    )
    def test_no_overlap(self, tmp_path: Path, second: str) -> None:
        read(tmp_path, TWO_LISTENERS.format(second=second))

    def test_brokers_have_the_ports_up_to_the_next_one_in_use(self, tmp_path: Path) -> None:
        settings = read(
            tmp_path, TWO_LISTENERS.format(second="bootstrap_port: 29192, broker_port_base: 29200")
        )
        first, second = settings.listeners
        assert settings.broker_ports(first) == range(29100, 29192)
        assert settings.broker_ports(second) == range(29200, 65536)

    def test_other_addresses_take_no_ports_away(self, tmp_path: Path) -> None:
        second = "bind: 127.0.0.2, bootstrap_port: 29192, broker_port_base: 29200"
        settings = read(tmp_path, TWO_LISTENERS.format(second=second))
        assert settings.broker_ports(settings.listeners[0]) == range(29100, 65536)

    def test_count_keeps_ports(self, tmp_path: Path) -> None:
        one = "{{bootstrap_port: 29103, broker_port_count: {count}, upstream: {{bootstrap: ['k:9092']}}}}"
        settings = read(tmp_path, f"listeners: [{one.format(count=3)}]")
        assert settings.broker_ports(settings.listeners[0]) == range(29100, 29103)
        assert "ports 29100 to 29103 are kept" in refusal(tmp_path, f"listeners: [{one.format(count=4)}]")

    def test_zero_is_any_free_port_for_each_broker(self, tmp_path: Path) -> None:
        settings = read(tmp_path, "listeners: [{broker_port_base: 0, upstream: {bootstrap: ['k:9092']}}]")
        assert settings.broker_ports(settings.listeners[0]) == range(0)


REPLICATION = """
listeners:
  - {{broker_port_count: 20, upstream: {{bootstrap: ['k:9092']}}}}
  - {{name: r, replication: true, broker_port_base: 29200, broker_port_count: 10, upstream: {upstream}}}
"""


class TestReplication:
    def test_has_no_bootstrap_port_and_knows_its_brokers(self, tmp_path: Path) -> None:
        settings = read(tmp_path, REPLICATION.format(upstream="{brokers: {1: 'k:9094', 9: '[::1]:9095'}}"))
        clients, replication = settings.listeners
        assert not clients.replication
        assert replication.upstream.brokers == {1: "k:9094", 9: "[::1]:9095"}
        assert settings.client_listeners == (clients,)

    @pytest.mark.parametrize(
        ("upstream", "expected"),
        [
            (
                "{bootstrap: ['k:9092']}",
                "bootstrap: a replication listener takes upstream.brokers instead: the cluster itself says "
                "the proxy's own addresses",
            ),
            (
                "{}",
                "brokers: has to be given for a replication listener: HOST:PORT by node id, for every broker",
            ),
            ("{brokers: {-1: 'k:9094'}}", "brokers: its keys are numbers; expected int >= 0"),
            ("{brokers: {1: k}}", "brokers.1: expected HOST:PORT, got 'k'"),
            (
                "{brokers: {10: 'k:1'}}",
                "brokers.10: its port would be 29210, and brokers' ports end at 29209; raise "
                "broker_port_count",
            ),
            (
                "{brokers: {1: '127.0.0.1:29201'}}",
                "brokers.1: 127.0.0.1:29201 is this proxy itself; expected a broker",
            ),
        ],
    )
    def test_what_is_wrong_with_its_upstream(self, tmp_path: Path, upstream: str, expected: str) -> None:
        message = refusal(tmp_path, REPLICATION.format(upstream=upstream))
        assert message.partition(" ")[2] == f"listeners[1].upstream.{expected}"

    def test_a_listener_for_clients_takes_no_brokers(self, tmp_path: Path) -> None:
        message = refusal(tmp_path, "listeners: [{upstream: {bootstrap: ['k:9092'], brokers: {1: 'k:1'}}}]")
        assert message.endswith(
            "brokers: is for replication listeners; this one learns its brokers from upstream.bootstrap"
        )

    def test_one_for_clients_has_to_be_there(self, tmp_path: Path) -> None:
        message = refusal(tmp_path, "listeners: [{replication: true, upstream: {brokers: {1: 'k:1'}}}]")
        assert "listeners: there is none for clients" in message

    def test_one_has_to_let_the_proxy_ask(self, tmp_path: Path) -> None:
        text = REPLICATION.format(upstream="{brokers: {1: 'k:9094'}}")
        text = text.replace("{broker_port_count: 20", "{principal: {from: sasl}, broker_port_count: 20")
        assert "none lets the proxy ask the cluster" in refusal(tmp_path, text)

    @pytest.mark.parametrize(
        ("enforce", "ours", "passed_on"),
        [("", True, False), ("proxy", True, False), ("broker", False, False), ("both", True, True)],
    )
    def test_who_enforces(self, tmp_path: Path, enforce: str, ours: bool, passed_on: bool) -> None:
        text = REPLICATION.format(upstream="{brokers: {1: 'k:9094'}}")
        more = f"quotas: {{replication: {{enforce: {enforce}}}}}" if enforce else ""
        rules = config_rules(read(tmp_path, text + more))
        rate, switch = "leader.replication.throttled.rate", "leader.replication.throttled"
        assert (rate in rules.keys("broker"), rate in rules.passed_on) == (ours, passed_on)
        assert switch not in rules.passed_on, "no broker knows it"

    def test_without_a_replication_listener_brokers_enforce(self, tmp_path: Path) -> None:
        listener = "listeners: [{upstream: {bootstrap: ['k:9092']}}]\n"
        assert "leader.replication.throttled.rate" not in config_rules(read(tmp_path, listener)).keys(
            "broker"
        )
        message = refusal(tmp_path, listener + "quotas: {replication: {enforce: proxy}}")
        assert "proxy takes a replication listener" in message
        rate = "quotas: {brokers: {1: {leader.replication.throttled.rate: 5}}}"
        assert "brokers themselves enforce it" in refusal(tmp_path, listener + rate)


def test_callback(tmp_path: Path) -> None:
    callback = "proxy.quota_callback:QuotaCallback"
    settings = read(tmp_path, SMALLEST + f'quotas: {{callback: "{callback}", callback_error: closed}}')
    assert limits(settings).source is not None
    problem = refusal(tmp_path, SMALLEST + "quotas: {callback: nowhere:Class}")
    assert "quotas.callback: nowhere:Class cannot be made: ModuleNotFoundError" in problem
