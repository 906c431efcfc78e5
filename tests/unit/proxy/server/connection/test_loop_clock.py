"""loop_clock: the connections of an event loop share its clock."""

import asyncio

from proxy.server.connection.loop_clock import loop_clock


def test_the_connections_of_a_loop_share_its_clock() -> None:
    one, other = asyncio.new_event_loop(), asyncio.new_event_loop()
    try:
        clock = loop_clock(one)
        assert loop_clock(one) is clock
        assert loop_clock(other) == other.time
        assert loop_clock(one) == one.time
    finally:
        one.close()
        other.close()
