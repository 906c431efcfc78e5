"""Ports of the configuration: none is used twice, and each listener has enough for its brokers."""

from pathlib import Path

import pytest

from proxy.config.ports import broker_ports
from proxy.errors import KeyPath, spell
from tests.support.process.settings import read, rejected_key, rejection

TWO_LISTENERS = """
    listeners:
      - {{name: a, bootstrap_port: 29092, broker_port_base: 29100, upstream: {{bootstrap: [k:9092]}}}}
      - {{name: b, {second}, upstream: {{bootstrap: [k:9092]}}}}
    """


@pytest.mark.parametrize(
    ("second", "key", "names"),
    [
        (
            "bootstrap_port: 29092, broker_port_base: 29200",
            ("listeners", 1, "bootstrap_port"),
            "listeners[0].bootstrap_port uses port 29092 already",
        ),
        (
            "bootstrap_port: 29093, broker_port_base: 29100",
            ("listeners", 1, "broker_port_base"),
            "listeners[0].broker_port_base",
        ),
        ("bootstrap_port: 9644, broker_port_base: 29200", ("listeners", 1, "bootstrap_port"), "admin.port"),
        (
            "bootstrap_port: 29105, broker_port_base: 29200",
            ("listeners", 0, "broker_port_base"),
            "ports 29100 to 29109 are reserved for brokers (base + node id), but listeners[1].bootstrap_port",
        ),
        (
            "bootstrap_port: 29093, broker_port_base: 29109",
            ("listeners", 0, "broker_port_base"),
            "listeners[1].broker_port_base is 29109",
        ),
        (
            "bind: 0.0.0.0, advertised_host: h, bootstrap_port: 29092, broker_port_base: 29200",
            ("listeners", 1, "bootstrap_port"),
            "listeners[0].bootstrap_port",
        ),
        (
            "bind: localhost, bootstrap_port: 29092, broker_port_base: 29200",
            ("listeners", 1, "bootstrap_port"),
            "listeners[0].bootstrap_port",
        ),
        ("bootstrap_port: 29093, broker_port_base: 65527", ("listeners", 1, "broker_port_base"), "65536"),
        (
            "bootstrap_port: 29093, broker_port_base: 0, broker_port_count: 3",
            ("listeners", 1, "broker_port_count"),
            "broker_port_base: 0",
        ),
    ],
)
def test_overlap_is_rejected_and_names_both_sides(
    tmp_path: Path, second: str, key: KeyPath, names: str
) -> None:
    error = rejection(tmp_path, TWO_LISTENERS.format(second=second))
    assert spell(error.key) == spell(key)
    assert names in error.expected


@pytest.mark.parametrize(
    "second",
    [
        "bind: 127.0.0.2, bootstrap_port: 29092, broker_port_base: 29100",
        "bootstrap_port: 29192, broker_port_base: 29200",
        "bootstrap_port: 29192, broker_port_base: 65526",
        "bootstrap_port: 0, broker_port_base: 0",
    ],
)
def test_ports_that_do_not_overlap_are_accepted(tmp_path: Path, second: str) -> None:
    read(tmp_path, TWO_LISTENERS.format(second=second))


def test_broker_ports_end_at_the_next_port_in_use(tmp_path: Path) -> None:
    settings = read(tmp_path, TWO_LISTENERS.format(second="bootstrap_port: 29192, broker_port_base: 29200"))
    first, second = settings.listeners
    assert broker_ports(settings, first) == range(29100, 29192)
    assert broker_ports(settings, second) == range(29200, 65536)


def test_ports_on_another_address_do_not_limit_broker_ports(tmp_path: Path) -> None:
    second = "bind: 127.0.0.2, bootstrap_port: 29192, broker_port_base: 29200"
    settings = read(tmp_path, TWO_LISTENERS.format(second=second))
    assert broker_ports(settings, settings.listeners[0]) == range(29100, 65536)


def test_count_reserves_ports(tmp_path: Path) -> None:
    one = (
        "listeners: [{{bootstrap_port: 29103, broker_port_count: {count}, upstream: {{bootstrap: ['k:1']}}}}]"
    )
    settings = read(tmp_path, one.format(count=3))
    assert broker_ports(settings, settings.listeners[0]) == range(29100, 29103)
    assert rejected_key(tmp_path, one.format(count=4)) == ("listeners", 0, "broker_port_base")


def test_base_zero_gives_each_broker_any_free_port(tmp_path: Path) -> None:
    settings = read(tmp_path, "listeners: [{broker_port_base: 0, upstream: {bootstrap: ['k:9092']}}]")
    assert broker_ports(settings, settings.listeners[0]) == range(0)
