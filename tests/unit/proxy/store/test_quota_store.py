"""QuotaStore: what the tools change is planned, logged, read back and in force; and temporary values end."""

import asyncio
import logging
from collections.abc import Mapping
from functools import partial

import pytest

from proxy.quota.identity import DEFAULT, Identity, QuotaEntity
from proxy.quota.limits.enforcement import UNLIMITED, EnforcementSettings, RateAlgorithm
from proxy.quota.limits.limits import Limits
from proxy.store.layers import SLICE, Temporary
from proxy.store.quota_records import Place, Setting
from proxy.store.quota_store import ClientQuotaAlteration, QuotaStore, StoreOff
from tests.support.quotas.memory_store import Wall, file_of, memory_store

ALICE = QuotaEntity("alice", None)
RATE = "producer_byte_rate"
IP_RATE = "connection_creation_rate"
WHO = Identity("admin", "adminclient-1", "10.0.0.1")


class Kit:
    """A store on a file's quotas, its log, and the limits that it has given out."""

    def __init__(self, file: Mapping[QuotaEntity, Mapping[str, float]] | None = None) -> None:
        self.wall = Wall()
        self.given: list[Limits] = []
        self._changed = asyncio.Event()
        self.store, self.log = memory_store(file or {}, self._take, self.wall)

    def _take(self, limits: Limits) -> None:
        self.given.append(limits)
        self._changed.set()

    async def alter(self, entity: QuotaEntity = ALICE, **values: float | None) -> list[tuple[Place, Setting]]:
        """Change quotas for good; the records that it took."""
        return await self.change(ClientQuotaAlteration(entity, values))

    async def change(self, *changes: ClientQuotaAlteration) -> list[tuple[Place, Setting]]:
        before = len(self.log.records)
        await self.store.alter(changes, WHO)
        return self.log.records[before:]

    async def limit_becomes(self, limit: float) -> None:
        async with asyncio.timeout(30):
            while self.limit() != limit:
                self._changed.clear()
                await self._changed.wait()

    def limit(self, name: str = "alice") -> float:
        return self.store.limits.limit(RATE, name, "")


def setting(value: float | None, **more: object) -> Setting:
    return Setting(value=value, by="a", client_id="b", origin="c", at_ms=1, **more)  # type: ignore[arg-type]


@pytest.fixture
async def kit() -> Kit:
    return Kit({ALICE: {RATE: 10}})


async def test_quotas_of_the_file_are_effective() -> None:
    kit = Kit({ALICE: {RATE: 10}})
    assert kit.limit() == 10
    assert kit.store.effective == {ALICE: {RATE: 10}}


async def test_without_a_log_changes_are_rejected(kit: Kit) -> None:
    kit.store.log = None
    with pytest.raises(StoreOff):
        await kit.alter(producer_byte_rate=20)
    assert kit.limit() == 10


async def test_change_is_stored_with_its_author_and_takes_effect(kit: Kit) -> None:
    [(place, what)] = await kit.alter(producer_byte_rate=20)
    assert place == Place(ALICE, RATE)
    assert what == Setting(
        value=20, by="admin", client_id="adminclient-1", origin="10.0.0.1", at_ms=kit.wall.ms
    )
    assert kit.limit() == 20
    assert kit.given == [kit.store.limits]


async def test_change_without_a_difference_is_not_stored(kit: Kit) -> None:
    assert await kit.alter(producer_byte_rate=10) == []
    assert await kit.alter(consumer_byte_rate=None) == []
    assert kit.given == []


async def test_removal_hides_the_file_only_where_the_file_has_a_value(kit: Kit) -> None:
    [(_, what)] = await kit.alter(producer_byte_rate=None)
    assert (what.value, what.removed) == (None, True)
    assert kit.limit() == UNLIMITED
    await kit.alter(consumer_byte_rate=5)
    [(_, what)] = await kit.alter(consumer_byte_rate=None)
    assert (what.value, what.removed) == (None, False)
    assert kit.store.effective == {}


async def test_quota_removed_before_the_file_had_it_takes_effect_with_the_file(kit: Kit) -> None:
    await kit.alter(consumer_byte_rate=5)
    await kit.alter(consumer_byte_rate=None)
    await kit.store.use_file(file_of({ALICE: {"consumer_byte_rate": 6}}))
    assert kit.store.effective == {ALICE: {"consumer_byte_rate": 6}}


async def test_another_file_keeps_changes_with_tools(kit: Kit, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    await kit.alter(producer_byte_rate=20)
    await kit.store.use_file(file_of({ALICE: {RATE: 11, "consumer_byte_rate": 3}}))
    assert kit.store.effective == {ALICE: {RATE: 20, "consumer_byte_rate": 3}}
    [message] = caplog.messages
    assert "override 1 quotas" in message
    assert kit.limit() == 20


async def test_another_file_with_the_same_settings_shares_the_rest(kit: Kit) -> None:
    await kit.alter(consumer_byte_rate=1)
    before = kit.store.limits
    await kit.store.use_file(file_of({ALICE: {RATE: 11}}))
    assert kit.limit() == 11
    assert kit.store.limits.configured("consumer_byte_rate") is before.configured("consumer_byte_rate")
    given = len(kit.given)
    await kit.store.use_file(file_of({ALICE: {RATE: 11}}))
    assert len(kit.given) == given, "nothing has changed"


@pytest.mark.parametrize("settings", [None, "other"])
async def test_file_with_many_changes_yields_to_the_event_loop(settings: str | None) -> None:
    many = {QuotaEntity(f"user-{number}", None): {RATE: 1.0} for number in range(3 * SLICE)}
    kit = Kit(many)
    file = file_of({entity: {RATE: 2.0} for entity in many})
    file.settings = settings
    seen = []
    async with asyncio.TaskGroup() as tasks:
        taking = tasks.create_task(kit.store.use_file(file))
        while not taking.done():
            await asyncio.sleep(0)
            seen.append((kit.limit("user-0"), kit.limit(f"user-{3 * SLICE - 1}")))
            first = QuotaEntity("user-0", None)
            assert kit.store.effective[first] == {RATE: kit.limit("user-0")}, "what is shown is in force"
    assert seen[0] == (2.0, 1.0), "the first ones are in force already"
    assert seen[-1] == (2.0, 2.0)
    assert {kit.limit(entity.user or "") for entity in many} == {2.0}
    change = kit.given[1].change_since(kit.given[0], RATE)
    assert change is not None, "buckets keep the rest"
    assert len(change.entities) == SLICE


async def test_other_settings_make_other_limits_of_the_same_quotas(kit: Kit) -> None:
    file = file_of({ALICE: {RATE: 10}})
    file.settings = "other"
    file.build = partial(Limits, settings=EnforcementSettings(algorithm=RateAlgorithm(burst_seconds=7)))
    await kit.store.use_file(file)
    assert (kit.limit(), kit.store.limits.settings.algorithm.burst_seconds) == (10, 7)


async def test_one_change_shares_the_rest(kit: Kit) -> None:
    """The engine leaves the buckets of a quota alone whose very object it has already."""
    await kit.alter(consumer_byte_rate=1)
    before = kit.store.limits
    await kit.alter(consumer_byte_rate=2)
    assert kit.store.limits.configured(RATE) is before.configured(RATE)


class TestTemporary:
    async def test_holds_until_it_ends(self, kit: Kit) -> None:
        [(place, what)] = await kit.change(ClientQuotaAlteration(ALICE, {RATE: 50}, kit.wall.ms + 100))
        assert place.temporary
        assert what.expires_at_ms == kit.wall.ms + 100
        assert kit.limit() == 50
        kit.wall.ms += 100
        await kit.limit_becomes(10)
        kit.store.close()

    async def test_same_again_is_not_logged(self, kit: Kit) -> None:
        change = ClientQuotaAlteration(ALICE, {RATE: 50}, kit.wall.ms + 100)
        assert len(await kit.change(change)) == 1
        assert await kit.change(change) == []

    async def test_what_is_set_for_good_ends_it(self, kit: Kit) -> None:
        await kit.change(ClientQuotaAlteration(ALICE, {RATE: 50}, kit.wall.ms + 100))
        records = await kit.alter(producer_byte_rate=10)
        assert [place.temporary for place, _ in records] == [True], "10 is what the file says already"
        assert kit.limit() == 10
        await kit.change(ClientQuotaAlteration(ALICE, {RATE: 50}, kit.wall.ms + 100))
        records = await kit.alter(producer_byte_rate=12)
        assert [place.temporary for place, _ in records] == [False, True]
        assert kit.limit() == 12

    async def test_removing_for_good_ends_it(self, kit: Kit) -> None:
        await kit.change(ClientQuotaAlteration(ALICE, {RATE: 50}, kit.wall.ms + 100))
        await kit.alter(producer_byte_rate=None)
        assert kit.limit() == UNLIMITED

    async def test_lifts_a_limit(self, kit: Kit) -> None:
        await kit.change(ClientQuotaAlteration(ALICE, {RATE: None}, kit.wall.ms + 100))
        assert kit.limit() == UNLIMITED

    async def test_is_ended_before_its_time(self, kit: Kit) -> None:
        await kit.change(ClientQuotaAlteration(ALICE, {RATE: 50, "consumer_byte_rate": 5}, kit.wall.ms + 100))
        assert len(await kit.change(ClientQuotaAlteration(ALICE, {}, end_temporary=True))) == 2
        assert kit.store.effective == {ALICE: {RATE: 10}}

    async def test_of_the_file(self) -> None:
        kit = Kit()
        file = file_of({ALICE: {RATE: 10}})
        file.layer.set_temporary(ALICE, RATE, Temporary(90, kit.wall.ms + 100))
        await kit.store.use_file(file)
        assert kit.limit() == 90
        kit.wall.ms += 100
        await kit.limit_becomes(10)
        kit.store.close()

    async def test_of_the_first_file_ends_too(self) -> None:
        wall = Wall()
        file = file_of({})
        file.layer.set_temporary(ALICE, RATE, Temporary(90, wall.ms + 50))
        over = asyncio.Event()
        store = QuotaStore(file, lambda _: over.set(), wall)
        store.start()
        wall.ms += 50
        async with asyncio.timeout(30):
            await over.wait()
        assert store.effective == {}
        store.close()


class TestReading:
    def test_nothing_counts_before_the_end_is_reached(self, kit: Kit) -> None:
        kit.store.read_anew()
        kit.store.read([(Place(ALICE, RATE), setting(5)), (Place(ALICE, RATE), setting(6))])
        assert kit.limit() == 10
        kit.store.read_to_end()
        assert kit.limit() == 6
        assert len(kit.given) == 1

    def test_what_the_log_has_no_more_is_gone(self, kit: Kit) -> None:
        kit.store.read([(Place(ALICE, RATE), setting(5))])
        kit.store.read_anew()
        kit.store.read([(Place(QuotaEntity("bob", None), RATE), setting(7))])
        assert kit.limit() == 5, "until it has been read to its end, what was known holds"
        kit.store.read_to_end()
        assert (kit.limit(), kit.limit("bob")) == (10, 7)

    async def test_temporary_values_that_are_over_are_not_in_force(self, kit: Kit) -> None:
        kit.store.read_anew()
        over = setting(5, expires_at_ms=kit.wall.ms)
        kit.store.read([(Place(ALICE, RATE, True), over)])
        kit.store.read_to_end()
        assert kit.limit() == 10
        kit.store.close()

    def test_tombstones_take_away(self, kit: Kit) -> None:
        kit.store.read([(Place(ALICE, RATE), setting(5))])
        kit.store.read([(Place(ALICE, RATE), None)])
        assert kit.limit() == 10

    def test_to_the_end_again_changes_nothing(self, kit: Kit) -> None:
        kit.store.read_to_end()
        assert kit.given == []


class TestAddresses:
    async def test_a_host_name_is_enforced_as_its_address(self) -> None:
        kit = Kit()
        entity = QuotaEntity(None, None, "localhost")
        [(_, what)] = await kit.change(ClientQuotaAlteration(entity, {IP_RATE: 3}, address="127.0.0.1"))
        assert what.address == "127.0.0.1"
        assert kit.store.effective == {entity: {IP_RATE: 3}}
        assert kit.store.limits.ip_limit(IP_RATE, "127.0.0.1") == 3
        await kit.alter(entity, connection_creation_rate=None)
        assert kit.store.limits.ip_limit(IP_RATE, "127.0.0.1") == UNLIMITED

    @pytest.mark.parametrize(
        ("name", "address"),
        [
            ("::ffff:10.0.0.1", "10.0.0.1"),
            ("0:0:0:0:0:0:0:1", "::1"),
            ("10.0.0.0/8", "10.9.9.9"),
            (DEFAULT, "192.0.2.1"),
        ],
    )
    async def test_other_spellings(self, name: str, address: str) -> None:
        kit = Kit()
        await kit.alter(QuotaEntity(None, None, name), connection_creation_rate=3)
        assert kit.store.limits.ip_limit(IP_RATE, address) == 3
        await kit.store.use_file(file_of({}))
        assert kit.store.limits.ip_limit(IP_RATE, address) == 3

    @pytest.mark.parametrize("order", [("10.0.0.1", "::ffff:10.0.0.1"), ("::ffff:10.0.0.1", "10.0.0.1")])
    async def test_limit_of_another_spelling_survives_a_removal(self, order: tuple[str, str]) -> None:
        kit = Kit()
        first, second = (QuotaEntity(None, None, name) for name in order)
        await kit.alter(first, connection_creation_rate=3)
        await kit.alter(second, connection_creation_rate=5)
        assert kit.store.limits.ip_limit(IP_RATE, "10.0.0.1") == 3
        await kit.alter(first, connection_creation_rate=None)
        assert kit.store.limits.ip_limit(IP_RATE, "10.0.0.1") == 5
        await kit.alter(second, connection_creation_rate=None)
        assert kit.store.limits.ip_limit(IP_RATE, "10.0.0.1") == UNLIMITED

    @pytest.mark.parametrize("rate", [3, 4], ids=["the same value", "another value"])
    async def test_host_with_another_address(self, rate: float) -> None:
        """The record may be of another proxy, which resolves the name at another time."""
        kit = Kit()
        place = Place(QuotaEntity(None, None, "a.example"), IP_RATE)
        kit.store.read([(place, setting(3, address="10.0.0.1"))])
        kit.store.read([(place, setting(rate, address="10.0.0.2"))])
        limits = kit.store.limits
        assert limits.ip_limit(IP_RATE, "10.0.0.1") == UNLIMITED
        assert limits.ip_limit(IP_RATE, "10.0.0.2") == rate

    async def test_removal_at_another_address(self) -> None:
        kit = Kit()
        place = Place(QuotaEntity(None, None, "a.example"), IP_RATE)
        kit.store.read([(place, setting(3, address="10.0.0.1"))])
        kit.store.read([(place, setting(None, address="10.0.0.2"))])
        assert kit.store.limits.configured(IP_RATE) == {}
