import asyncio

import pytest

from bench.attacks.attacker import Done, send
from bench.attacks.catalogue import ATTACKS, Target


async def test_a_flood_goes_on_until_cancelled(broker: int) -> None:
    done = Done()
    flood = ATTACKS["end_txn"](Target(broker, "topic", b""))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.3):
            await send(Target(broker, "topic", b""), flood, done)
    assert done.responses.value > 5
    assert done.ends.value == 0
