import asyncio
from dataclasses import replace

import pytest

from bench.attacks.attacker import Done, send
from bench.attacks.catalogue import ATTACKS, Target
from tests.support.waiting import reached
from tests.unit.bench.attacks.conftest import THROTTLE_MS, produced

AT_THE_END = len(produced()) - 8
"""Where a response of the broker has throttle_time_ms."""


async def test_a_flood_goes_on_until_cancelled(broker: int) -> None:
    done = Done()
    flood = replace(ATTACKS["end_txn"](Target(broker, "topic", b"")), throttle_at=AT_THE_END)
    sending = asyncio.ensure_future(send(Target(broker, "topic", b""), flood, done))
    await reached(lambda: done.responses.value > 5 or sending.done(), "responses")
    sending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sending
    assert done.responses.value > 5
    assert done.ends.value == 0
    assert done.throttled_ms.value == done.responses.value * THROTTLE_MS
