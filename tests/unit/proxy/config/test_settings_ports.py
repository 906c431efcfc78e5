"""Settings: the ports of listeners, which must not overlap."""

from pathlib import Path

import pytest

from tests.support.process.settings import read, rejection

EACH = "; give each its own"
KEPT = " are kept for brokers (base + node id)"
ADVICE = "; move one of them, or set broker_port_count to as many as this cluster needs"
TWO_LISTENERS = """
    listeners:
      - {{name: a, bootstrap_port: 29092, broker_port_base: 29100, upstream: {{bootstrap: [k:9092]}}}}
      - {{name: b, {second}, upstream: {{bootstrap: [k:9092]}}}}
    """


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
        message = rejection(tmp_path, TWO_LISTENERS.format(second=second))
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
        assert "ports 29100 to 29103 are kept" in rejection(tmp_path, f"listeners: [{one.format(count=4)}]")

    def test_zero_is_any_free_port_for_each_broker(self, tmp_path: Path) -> None:
        settings = read(tmp_path, "listeners: [{broker_port_base: 0, upstream: {bootstrap: ['k:9092']}}]")
        assert settings.broker_ports(settings.listeners[0]) == range(0)
