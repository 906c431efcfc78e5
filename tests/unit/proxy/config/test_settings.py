"""The types of the configuration file: defaults, and values that follow from others."""

from pathlib import Path

import pytest

from tests.support.process.settings import SMALLEST, read

LOGINS = "listeners: [{principal: {from: sasl}, upstream: {bootstrap: ['k:1']%s}}]\nquotas: {store: none}"


def test_smallest_file_gets_safe_defaults(tmp_path: Path) -> None:
    settings = read(tmp_path, SMALLEST)
    [listener] = settings.listeners
    assert (listener.name, listener.bind, listener.advertised_host) == ("clients", "127.0.0.1", "127.0.0.1")
    assert (listener.bootstrap_port, listener.broker_port_base) == (29092, 29100)
    assert listener.upstream.addresses == (("127.0.0.1", 19092),)
    assert (settings.admin.bind, settings.admin.port) == ("127.0.0.1", 9644)
    assert settings.limits.max_frame_bytes == 104857600
    assert settings.quotas.algorithm == "pace"
    assert settings.quotas.clients == ()


def test_the_proxys_topics_are_those_that_the_file_names(tmp_path: Path) -> None:
    shares = "__quota_proxy_shares"
    assert read(tmp_path, SMALLEST).proxy_topics == {"__quota_proxy_config", shares}
    named = "quotas: {store: {topic: q}}\nusage: {kafka: {topic: u}}\n"
    assert read(tmp_path, SMALLEST + named).proxy_topics == {"q", "q_shares", "u", shares}
    nothing = "quotas: {store: none}\nusage: {files: {folder: f}}\n"
    assert read(tmp_path, SMALLEST + nothing).proxy_topics == {shares}


@pytest.mark.parametrize(
    ("text", "topic"),
    [
        ("", "__quota_proxy_shares"),
        ("sharing: auto", "__quota_proxy_shares"),
        ("quotas: {store: {topic: __quota_proxy_config}}", "__quota_proxy_shares"),
        ("quotas: {store: {topic: q}}", "q_shares"),
        ("quotas: {store: {topic: q}}\nsharing: {instance: a}", "q_shares"),
        ("quotas: {store: {topic: q}}\nsharing: off", None),
        (f"quotas: {{store: {{topic: {'q' * 249}}}}}", "q" * 242 + "_shares"),
        ("quotas: {store: none}", None),
        ("quotas: {store: none}\nsharing: auto", None),
        ("quotas: {store: none}\nsharing: on", "__quota_proxy_shares"),
        ("sharing: off", None),
        ("sharing: on", "__quota_proxy_shares"),
        ("sharing: {}", "__quota_proxy_shares"),
        ("sharing: {topic: s, instance: a}", "s"),
    ],
)
def test_limits_are_shared_where_quotas_are_in_a_topic(tmp_path: Path, text: str, topic: str | None) -> None:
    settings = read(tmp_path, f"{SMALLEST}{text}\n")
    shares = settings.shares
    assert (None if shares is None else shares.topic) == topic
    assert topic is None or topic in settings.proxy_topics


def test_advertised_host_follows_bind(tmp_path: Path) -> None:
    text = "listeners: [{bind: 10.0.0.7, upstream: {bootstrap: [k:9092]}}]"
    assert read(tmp_path, text).listeners[0].advertised_host == "10.0.0.7"


def test_proxy_can_ask_where_clients_log_in_only_with_a_login_of_its_own(tmp_path: Path) -> None:
    sasl = ", sasl: {mechanism: PLAIN, username: u, password_env: P}"
    assert not read(tmp_path, LOGINS % "").listeners[0].asks
    assert read(tmp_path, LOGINS % sasl).listeners[0].asks
