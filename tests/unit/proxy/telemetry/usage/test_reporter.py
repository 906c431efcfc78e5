"""Reports: an interval's tallies become events, by the wall clock and with the topics' names."""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import pytest

from proxy.quota.usage import UsageLedger
from proxy.telemetry.usage.events import UsageEvent
from proxy.telemetry.usage.reporter import Source, UsageReporter, name_of_this_run
from proxy.telemetry.usage.sink import Sink
from proxy.wire.cursor import NO_ID
from proxy.wire.views import Item

ID, OTHER_ID = bytes(range(16)), bytes(range(1, 17))
PRODUCE, FETCH = 0, 1


class Names:
    def __init__(self) -> None:
        self.known: dict[bytes, str] = {}
        self.cluster = {ID: "by-id"}
        self.wanted: set[bytes] = set()

    def topic_name(self, topic_id: bytes) -> str:
        return self.known.get(topic_id, "")

    def want_names(self, topic_ids: Iterable[bytes]) -> None:
        self.wanted.update(topic_ids)
        self.known.update(self.cluster)


class Story:
    """A reporter of one listener, with a clock of its own."""

    def __init__(self, listeners: Sequence[str] = ("clients",)) -> None:
        self.now = 1_700_000_013.5
        self.passed = 0.0
        self.names = Names()
        self.ledgers = [UsageLedger() for _ in listeners]
        self.sink = Sink("memory")
        sources = [
            Source(name, ledger, self.names) for name, ledger in zip(listeners, self.ledgers, strict=True)
        ]
        self.reporter = UsageReporter(
            "prod",
            "me-1",
            10,
            sources,
            [self.sink],
            clock=lambda: self.now,
            monotonic=lambda: self.passed,
        )

    def use(self, size: int = 100, listener: int = 0, user: str = "u") -> None:
        self.ledgers[listener].client(1, user, "c").count_request(PRODUCE, size)

    async def after(self, seconds: float, clock: float = 0.0) -> tuple[int, int]:
        """Report after so many seconds, in which the clock is set forward by `clock`: start and length."""
        self.passed += seconds
        self.now += seconds + clock
        self.use()
        (event,) = await self.report()
        return event.interval_start_ms - 1_700_000_000_000, event.interval_ms

    async def report(self) -> list[UsageEvent]:
        self.sink._batches.clear()
        await self.reporter.report()
        return [msgspec.json.decode(event.value, type=UsageEvent) for event in self._events()]

    def _events(self) -> list[Any]:
        return [event for batch in self.sink._batches for event in batch]


async def test_the_fields_of_an_event() -> None:
    story = Story()
    client = story.ledgers[0].client(3, "alice", "billing")
    client.count_request(PRODUCE, 1000)
    client.divide_in(PRODUCE, [Item("orders", NO_ID, 7, 900)])
    client.count_out(PRODUCE, 50)
    client.count_throttle(PRODUCE, "producer_byte_rate", 1.2345, 1)
    client.count_rejected(PRODUCE, "bytes.in.per.sec.threshold", Item("orders", NO_ID, 7, 90), 1)
    rest, partition = await story.report()
    same = {
        "cluster": "prod",
        "proxy": "me-1",
        "broker": 3,
        "listener": "clients",
        "interval_start_ms": 1_700_000_010_000,
        "interval_ms": 10_000,
        "user": "alice",
        "client_id": "billing",
        "api": "Produce",
    }
    none = {"requests": 0, "bytes_out": 0, "throttled_requests": 0, "throttle_ms": 0}
    rejected = {"rejected_requests": 0, "rejected_bytes": 0}
    assert msgspec.to_builtins(rest) == {
        "v": 1,
        **same,
        **rejected,
        "topic": None,
        "partition": None,
        "requests": 1,
        "bytes_in": 100,
        "bytes_out": 50,
        "throttled_requests": 1,
        "throttle_ms": 1234,
        "quota": "producer_byte_rate",
    }
    assert msgspec.to_builtins(partition) == {
        "v": 1,
        **same,
        **none,
        "topic": "orders",
        "partition": 7,
        "bytes_in": 900,
        "rejected_requests": 1,
        "rejected_bytes": 90,
        "quota": "bytes.in.per.sec.threshold",
    }


async def test_an_interval_without_traffic_has_no_event() -> None:
    story = Story()
    assert await story.report() == []


async def test_intervals_follow_the_wall_clock() -> None:
    story = Story()
    # In time, a little early, late by two intervals, and in time.
    events = [await story.after(seconds) for seconds in (6.5, 9.9, 30.2, 9.9)]
    assert events == [(10_000, 10_000), (20_000, 10_000), (30_000, 30_000), (60_000, 10_000)]


async def test_a_clock_that_is_set_forward_and_back() -> None:
    """An interval is as long as it was, and those that follow are stamped by the clock."""
    story = Story()
    await story.after(6.8)
    assert await story.after(10, clock=3600) == (20_000, 10_000)
    assert await story.after(10) == (3_630_000, 10_000)
    assert await story.after(10, clock=-3600) == (3_640_000, 10_000)
    assert await story.after(10) == (50_001, 10_000)
    assert await story.after(10) == (60_001, 10_000)


async def test_no_two_intervals_have_the_same_start() -> None:
    """The start is a part of what identifies an event."""
    story = Story()
    starts = [
        (await story.after(10, clock=clock))[0] for clock in (0, 0, 0, -25, 0, -10, 0, -30, 0, 5, -5, 0)
    ]
    assert len(set(starts)) == len(starts)


async def test_topics_that_requests_name_by_id_have_their_names() -> None:
    story = Story()
    client = story.ledgers[0].client(1, "u", "c")
    client.records_in(PRODUCE, [Item("by-id", NO_ID, 0, 5), Item("", ID, 0, 7), Item("", OTHER_ID, 0, 9)])
    # One topic by its name and by its id is one event; an id that the cluster does not know stays.
    events = {event.topic: event.bytes_in for event in await story.report()}
    assert events == {"by-id": 12, OTHER_ID.hex(): 9}
    assert story.names.wanted == {ID, OTHER_ID}


async def test_each_listener_has_its_own_events() -> None:
    story = Story(["inside", "outside"])
    story.use(5, 0)
    story.use(7, 1)
    events = {event.listener: event.bytes_in for event in await story.report()}
    assert events == {"inside": 5, "outside": 7}


async def test_many_clients() -> None:
    story = Story()
    for number in range(1000):
        story.use(number, user=f"u{number}")
    events = await story.report()
    assert sorted(event.bytes_in for event in events) == list(range(1000))


def test_each_process_has_its_own_name() -> None:
    assert name_of_this_run() != name_of_this_run()


async def test_problems_are_those_of_the_sinks() -> None:
    story = Story()
    assert story.reporter.problems == []
    story.sink.problem = "topic t is unreachable"
    [problem] = story.reporter.problems
    assert problem.endswith(f": {story.sink.problem}")


async def test_an_error_in_one_event_does_not_affect_the_others(caplog: pytest.LogCaptureFixture) -> None:
    story = Story()
    story.use(5, user="\udcff")
    story.use(7)
    assert [event.bytes_in for event in await story.report()] == [7]
    assert story.sink.lost == 1
    (record,) = caplog.records
    assert record.args is not None
    count, listener, error = tuple(record.args)
    assert (count, listener) == (1, "clients")
    assert isinstance(error, UnicodeEncodeError)


async def test_a_failed_report_does_not_affect_the_next(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    story = Story(["inside", "outside"])
    client = story.ledgers[0].client(1, "u", "c")
    client.records_in(PRODUCE, [Item("", ID, 0, 7), Item("", ID, 1, 9)])
    story.use(5, 1)
    with monkeypatch.context() as patch:
        patch.setattr(story.names, "want_names", lambda topic_ids: 1 // 0)
        assert [event.listener for event in await story.report()] == ["outside"]
    assert story.sink.lost == 2
    (record,) = caplog.records
    assert record.args is not None
    count, listener, error = tuple(record.args)
    assert (count, listener) == (2, "inside")
    assert isinstance(error, ZeroDivisionError)
    story.use(8)
    assert [event.bytes_in for event in await story.report()] == [8]
