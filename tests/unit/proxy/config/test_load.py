"""Loading a file: every mistake is rejected with the file, the line and the key."""

from pathlib import Path

import pytest

from proxy.config.load import load, located_in
from proxy.config.usable_cores import usable_cores
from proxy.errors import KeyPath, SettingsError
from tests.support.process.settings import SMALLEST, read, rejected_key, rejection

CLIENT = "{upstream: {bootstrap: ['k:9092']}}"


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("", ()),
        ("[1]", ()),
        ("{}", ("listeners",)),
        ("listeners: []", ("listeners",)),
        ("listeners: [{}]", ("listeners", 0, "upstream")),
        ("listeners: [{upstream: {}}]", ("listeners", 0, "upstream", "bootstrap")),
        (SMALLEST + "admin: {port: 65536}", ("admin", "port")),
        (SMALLEST + "admin: {port: '9644'}", ("admin", "port")),
        (SMALLEST + "admin: {port: }", ("admin", "port")),
        (SMALLEST + "admin: {prot: 1}", ("admin", "prot")),
        (SMALLEST + "admin: {true: 1}", ("admin",)),
        (SMALLEST + "admin:", ("admin",)),
        (SMALLEST + "cluster: ''", ("cluster",)),
        (SMALLEST + "cluster: 7", ("cluster",)),
        (SMALLEST + "limits: {idle_seconds: .inf}", ("limits", "idle_seconds")),
        (SMALLEST + "limits: {drain_seconds: .nan}", ("limits", "drain_seconds")),
        (SMALLEST + "metrics: {topic_partitions: 1}", ("metrics", "topic_partitions")),
        (SMALLEST + "quotas: {algorithm: fast}", ("quotas", "algorithm")),
        (SMALLEST + "quotas: {algorithm: true}", ("quotas", "algorithm")),
        (SMALLEST + "quotas: {store: off}", ("quotas", "store")),
        (SMALLEST + "quotas: {store: {topic: a/b}}", ("quotas", "store", "topic")),
        (SMALLEST + "quotas: {store: {topik: a}}", ("quotas", "store", "topik")),
        (SMALLEST + "quotas: {mode: watch}", ("quotas", "mode")),
    ],
)
def test_value_of_the_wrong_type_is_rejected_by_its_key(tmp_path: Path, text: str, key: KeyPath) -> None:
    assert rejected_key(tmp_path, text) == key


def test_error_names_file_line_and_key(tmp_path: Path) -> None:
    text = """
    listeners:
      - upstream: {bootstrap: [k:9092]}
        broker_port_base: abc
    """
    error = rejection(tmp_path, text)
    assert error.key == ("listeners", 0, "broker_port_base")
    assert (error.file, error.line) == (tmp_path / "proxy.yaml", 4)
    assert "'abc'" in error.expected


def test_error_about_loaded_settings_gets_file_and_line(tmp_path: Path) -> None:
    file = tmp_path / "proxy.yaml"
    file.write_text(SMALLEST + "admin:\n  port: 1\n")
    with pytest.raises(SettingsError) as caught, located_in(file):
        raise SettingsError("taken", ("admin", "port"))
    assert (caught.value.file, caught.value.line) == (file, 3)
    file.unlink()
    with pytest.raises(SettingsError) as caught, located_in(file):
        raise SettingsError("taken", ("admin", "port"))
    assert (caught.value.file, caught.value.line, caught.value.key) == (file, None, ("admin", "port"))


def test_load_opens_no_other_file(tmp_path: Path) -> None:
    file = tmp_path / "proxy.yaml"
    file.write_text(SMALLEST + "admin: {token_file: missing}")
    assert load(file).admin.token_file == str(tmp_path / "missing")


@pytest.mark.parametrize("address", ["k", "127.0.0.1:29092"])
def test_bootstrap_is_an_address_and_not_the_proxy_s_own(tmp_path: Path, address: str) -> None:
    text = f"listeners: [{{upstream: {{bootstrap: ['k:9092', '{address}']}}}}]"
    assert rejected_key(tmp_path, text) == ("listeners", 0, "upstream", "bootstrap", 1)


def test_listener_names_differ(tmp_path: Path) -> None:
    error = rejection(tmp_path, f"listeners: [{CLIENT}, {CLIENT}]")
    assert error.key == ("listeners", 1, "name")
    assert "listeners[0]" in error.expected


def test_an_ipv6_address_may_have_brackets(tmp_path: Path) -> None:
    """A socket is bound without them, and brokers advertise their addresses without them."""
    text = "listeners: [{bind: '[::1]', upstream: {bootstrap: ['k:9092']}}]\nadmin: {bind: '[::1]'}"
    settings = read(tmp_path, text)
    [listener] = settings.listeners
    assert (listener.bind, listener.advertised_host, settings.admin.bind) == ("::1", "::1", "::1")
    text = "listeners: [{advertised_host: '[fd00::1]', upstream: {bootstrap: ['k:9092']}}]"
    assert read(tmp_path, text).listeners[0].advertised_host == "fd00::1"


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "[::]"])
def test_wildcard_is_never_advertised(tmp_path: Path, host: str) -> None:
    text = "listeners: [{{bind: '{host}'{more}, upstream: {{bootstrap: ['k:9092']}}}}]"
    assert rejected_key(tmp_path, text.format(host=host, more="")) == ("listeners", 0, "advertised_host")
    read(tmp_path, text.format(host=host, more=", advertised_host: a"))


@pytest.mark.parametrize("key", ["bind", "advertised_host"])
@pytest.mark.parametrize(
    ("host", "valid"),
    [
        ("kafka_1.example.com", True),
        ("fd00::1", True),
        ("[fd00::1]", True),
        ("kafka.example.com:29092", False),
        ("http://kafka", False),
        ("kafka 1", False),
    ],
)
def test_host_has_no_port(tmp_path: Path, key: str, host: str, valid: bool) -> None:
    text = f"listeners: [{{{key}: '{host}', upstream: {{bootstrap: ['k:9092']}}}}]"
    if valid:
        read(tmp_path, text)
    else:
        assert rejected_key(tmp_path, text) == ("listeners", 0, key)


def test_hosts_are_patterns(tmp_path: Path) -> None:
    text = "listeners: [{{upstream: {{bootstrap: ['k:9092'], hosts: {hosts}}}}}]"
    at = ("listeners", 0, "upstream", "hosts")
    assert rejected_key(tmp_path, text.format(hosts="[k, 10.0.0.0/33]")) == (*at, 1)
    assert rejected_key(tmp_path, text.format(hosts="[]")) == at


@pytest.mark.parametrize("key", ["bootstrap_port", "broker_port_base"])
def test_several_workers_need_ports_with_a_number(tmp_path: Path, key: str) -> None:
    text = f"listeners: [{{{key}: 0, upstream: {{bootstrap: ['k:9092']}}}}]\n"
    assert read(tmp_path, text).worker_count == 1
    assert rejected_key(tmp_path, text + "workers: 2\n") == ("listeners", 0, key)


def test_as_many_workers_as_cores(tmp_path: Path) -> None:
    assert read(tmp_path, SMALLEST + "workers: auto\n").worker_count == usable_cores()
    assert rejected_key(tmp_path, SMALLEST + "workers: 0\n") == ("workers",)
