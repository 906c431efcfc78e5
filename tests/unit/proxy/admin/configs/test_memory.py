"""ConfigsMemory: which responses of a client may grow."""

import asyncio

import pytest

from proxy.admin.configs import memory
from proxy.admin.configs.memory import FREE_BYTES, ConfigsMemory, ResponseMemory
from proxy.relay.close_reasons import RelayError

ALICE, BOB = ("alice", ""), ("bob", "")


def stays() -> bool:
    return False


async def grows(response: ResponseMemory) -> bool:
    """Whether a response may grow now."""
    waiting = asyncio.ensure_future(response.room(stays))
    await asyncio.sleep(0)
    done = waiting.done()
    waiting.cancel()
    return done


async def test_of_a_client_with_much_only_the_oldest_response_grows() -> None:
    configs = ConfigsMemory()
    oldest, other = configs.begin(ALICE), configs.begin(ALICE)
    oldest.add(FREE_BYTES)
    assert await grows(other)
    other.add(1)
    assert not await grows(other)
    assert await grows(oldest)
    oldest.add(10 * FREE_BYTES)
    assert await grows(oldest)
    assert await grows(configs.begin(BOB))


async def test_the_next_one_grows_when_the_oldest_is_read() -> None:
    configs = ConfigsMemory()
    oldest, other, third = (configs.begin(ALICE) for _ in range(3))
    for response in (oldest, other, third):
        response.add(FREE_BYTES)
    waiting = [asyncio.ensure_future(response.room(stays)) for response in (other, third)]
    await asyncio.sleep(0)
    oldest.free()
    oldest.free()
    await waiting[0]
    assert not waiting[1].done()
    other.free()
    await waiting[1]
    third.free()
    assert configs.clients == 0


async def test_a_client_that_has_gone_waits_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "LOOK_SECONDS", 0.001)
    configs = ConfigsMemory()
    oldest, other = configs.begin(ALICE), configs.begin(ALICE)
    oldest.add(2 * FREE_BYTES)
    looks = iter([False, False, True])
    with pytest.raises(RelayError, match="gone"):
        await other.room(lambda: next(looks))
