"""Waits in milliseconds; tests/relay/test_rejecting.py has the stories."""

import pytest

from proxy.relay.produce_gate import throttle_ms


@pytest.mark.parametrize(
    ("seconds", "milliseconds"), [(-1.0, 0), (0.0, 0), (0.0001, 1), (1.5, 1500), (1e12, 2**31 - 1)]
)
def test_a_wait_in_milliseconds(seconds, milliseconds):
    assert throttle_ms(seconds) == milliseconds
