"""TrafficWatch: warnings that counters give rise to, and how often the log has them."""

import pytest

from proxy.config.settings import Listener, Upstream
from proxy.relay.counters.traffic import Traffic
from proxy.security.settings import Principal
from proxy.server.listener.traffic_watch import LOG_UNREAD_EVERY_SECONDS, UnidentifiedLogins, UnreadFetches
from proxy.wire.api_keys import SASL_HANDSHAKE

UPSTREAM = Upstream(bootstrap=("k:9092",))


def test_logins_that_name_no_principal_are_a_warning_and_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    traffic = Traffic()
    watch = UnidentifiedLogins(Listener(name="clients", upstream=UPSTREAM), traffic)
    watch.check(0.0)
    assert (watch.warnings(), caplog.records) == ([], [])
    traffic.count_request(SASL_HANDSHAKE)
    for now in (1.0, 100.0, 1000.0):
        watch.check(now)
    [warning] = watch.warnings()
    assert "clients" in warning
    assert caplog.messages == [warning]


def test_logins_that_name_the_principal_are_no_warning() -> None:
    traffic = Traffic()
    traffic.count_request(SASL_HANDSHAKE)
    named = Listener(principal=Principal(source="sasl"), upstream=UPSTREAM)
    assert UnidentifiedLogins(named, traffic).warnings() == []


def test_unread_fetches_are_logged_now_and_then_with_those_since_the_last_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    traffic = Traffic()
    watch = UnreadFetches("brokers", traffic)
    watch.check(0.0)
    assert caplog.records == []
    traffic.unread_fetches = 2
    watch.check(1.0)
    traffic.unread_fetches = 5
    watch.check(2.0)
    watch.check(1.0 + LOG_UNREAD_EVERY_SECONDS)
    watch.check(1.0 + 2 * LOG_UNREAD_EVERY_SECONDS)
    assert [record.args for record in caplog.records] == [("brokers", 2), ("brokers", 3)]
    assert watch.warnings() == []
