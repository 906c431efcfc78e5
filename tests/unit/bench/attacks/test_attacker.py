import asyncio

import pytest

from bench.attacks.attacker import Done, send
from bench.attacks.catalogue import ATTACKS, Target
from tests.support.waiting import reached


async def test_a_flood_goes_on_until_cancelled(broker: int) -> None:
    done = Done()
    flood = ATTACKS["end_txn"](Target(broker, "topic", b""))
    sending = asyncio.ensure_future(send(Target(broker, "topic", b""), flood, done))
    await reached(lambda: done.responses.value > 5 or sending.done(), "responses")
    sending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sending
    assert done.responses.value > 5
    assert done.ends.value == 0
