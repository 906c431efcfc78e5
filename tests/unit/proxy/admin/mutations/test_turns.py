"""MutationTurns: whose turn it is; the clock is a number."""

import asyncio

import pytest

from proxy.admin.mutations import turns
from proxy.admin.mutations.turns import LONGEST_SLEEP, MutationTurns
from proxy.quota.identity import Identity, QuotaEntity
from proxy.quota.kinds.controller_mutation import CONTROLLER_MUTATION_RATE, ControllerMutation
from proxy.quota.limits.enforcement import OBSERVE
from proxy.quota.limits.limits import Limits
from proxy.quota.measure.bucket import Bucket
from proxy.relay.close_reasons import CLIENT_CLOSED, RelayError
from proxy.tasks import Tasks
from tests.support.quotas.enforcement import enforcement

WHO = Identity("u", "c", "127.0.0.1")


class Kit:
    """A limit of 2 partitions per second, with a burst of 22."""

    def __init__(self, **settings: str) -> None:
        self.now = 0.0
        self.sleeps: list[float] = []
        self.gone = False
        """Whether the client has closed its connection."""
        self.quota = ControllerMutation()
        limits = {QuotaEntity("u", None): {CONTROLLER_MUTATION_RATE: 2.0}}
        self.quota.configure(Limits(limits, settings=enforcement(**settings)), 0.0)  # type: ignore[arg-type]
        self.turns = MutationTurns(self.quota, lambda: self.now, self._sleep)

    async def _sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)

    async def take_one(self) -> None:
        await self.take(1)

    @property
    def bucket(self) -> Bucket:
        found = self.quota.bucket(WHO, self.now)
        assert found is not None
        return found

    async def take(self, permits: int) -> float:
        """Take tokens in turn; return when."""
        async with self.turns.turn(self.bucket, WHO, lambda: self.gone):
            self.quota.charge_permissive(self.bucket, permits, self.now)
            at = self.now
            await asyncio.sleep(0)
        return at


async def test_a_request_waits_until_the_tokens_are_not_below_zero() -> None:
    kit = Kit()
    assert [await kit.take(25), await kit.take(1)] == [0.0, pytest.approx(1.5)]
    assert max(kit.sleeps) <= LONGEST_SLEEP


async def test_those_that_wait_do_not_go_on_together() -> None:
    kit = Kit()
    times = await asyncio.gather(*[kit.take(26) for _ in range(4)])
    assert times == [pytest.approx(at) for at in (0.0, 2.0, 15.0, 28.0)]


async def test_observed_quotas_delay_nothing() -> None:
    kit = Kit(mode=OBSERVE)
    assert [await kit.take(1000) for _ in range(3)] == [0.0, 0.0, 0.0]


async def test_a_request_whose_client_is_gone_is_dropped() -> None:
    kit = Kit()
    await kit.take(100)
    kit.gone = True
    with pytest.raises(RelayError) as caught:
        await kit.take(1)
    assert caught.value.reason == CLIENT_CLOSED
    assert kit.turns._lines == {}


async def test_one_that_waits_for_others_is_dropped_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests may have megabytes, and the first in line may wait for an hour."""
    monkeypatch.setattr(turns, "LONGEST_SLEEP", 0.01)
    kit = Kit()
    first, last = asyncio.Event(), asyncio.Event()

    async def hold() -> None:
        async with kit.turns.turn(kit.bucket, WHO, lambda: False):
            first.set()
            await last.wait()

    holding = Tasks().start(hold())
    await first.wait()
    waiting = [asyncio.ensure_future(kit.take(1)) for _ in range(3)]
    await asyncio.sleep(0)
    kit.gone = True
    done = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(each) for each in done] == [RelayError] * 3
    last.set()
    await holding
    assert kit.turns._lines == {}


@pytest.mark.parametrize("moment", ["before its turn", "at its turn"])
async def test_the_next_has_the_turn_of_one_that_is_cancelled(moment: str) -> None:
    kit = Kit()
    last = asyncio.Event()

    async def hold() -> None:
        async with kit.turns.turn(kit.bucket, WHO, lambda: False):
            await last.wait()

    holding = Tasks().start(hold())
    await asyncio.sleep(0)
    cancelled, following = asyncio.ensure_future(kit.take(1)), asyncio.ensure_future(kit.take(1))
    await asyncio.sleep(0)
    if moment == "at its turn":
        last.set()
        await asyncio.wait([holding])
    cancelled.cancel()
    last.set()
    await asyncio.gather(holding, following)
    assert cancelled.cancelled()
    assert kit.turns._lines == {}


async def test_a_request_that_is_cancelled_leaves_nothing() -> None:
    kit = Kit()
    await kit.take(100)
    waiting = Tasks().start(kit.take_one())
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert kit.turns._lines == {}
