"""What the workers show together."""

from typing import cast

import msgspec

from proxy.server.workers.fleet import DOES_NOT_REPLY, Fleet
from proxy.server.workers.process import WorkerProcess
from proxy.telemetry.console import (
    CHANGE,
    EXPLAIN,
    OVERVIEW,
    ConsoleReply,
    ConsoleRequest,
    encode_reply,
)


class Worker:
    """A worker that replies with `body`."""

    def __init__(self, number: int, body: bytes) -> None:
        self.number = number
        self.body = body
        self.problems = ["starting"]
        self.warnings: list[str] = []
        self.certificates: dict[str, float] = {}
        self.replied = False

    async def ask(self, what: str, body: bytes = b"", seconds: float = 0.0) -> bytes:
        self.replied = self.replied or bool(self.body)
        return self.body


def fleet_of(count: int, *workers: Worker) -> Fleet:
    fleet = Fleet(count)
    for worker in workers:
        fleet.running[worker.number] = cast("WorkerProcess", worker)
    return fleet


async def test_it_is_ready_when_a_worker_is_and_says_of_the_others_why_they_are_not() -> None:
    one, other = (
        Worker(1, b'[[], ["same", "first"], {"a.pem": 3}]'),
        Worker(2, b'[["no broker"], ["same"], {}]'),
    )
    fleet = fleet_of(3, one, other)
    fleet.ended[3] = "ended"
    await fleet.ask_how_they_are()
    why = ["worker 2: no broker", "worker 3: ended"]
    assert (fleet.problems(), fleet.not_serving()) == ([], why)
    assert fleet.warnings() == [*why, "same", "worker 1: first"]
    assert fleet.certificates() == {"a.pem": 3}
    fleet.ended_process(fleet.running[1], "ended, too")
    assert fleet.problems() == ["worker 1: ended, too", *why]
    assert fleet.warnings() == ["same"], "each is told once"
    fleet = fleet_of(1, one)
    await fleet.ask_how_they_are()
    assert not fleet.problems()
    fleet.stopping = True
    assert fleet.problems()


async def test_a_successor_takes_over_when_it_is_told_to() -> None:
    old, new = [cast("WorkerProcess", Worker(1, b"[[], [], {}]")) for _ in range(2)]
    fleet = Fleet(1)
    fleet.others.add(old)
    assert fleet.take_over(old) is None
    fleet.others.add(new)
    assert (fleet.running, fleet.all) == ({1: old}, [old, new])
    assert fleet.take_over(new) is old
    assert (fleet.running, fleet.others) == ({1: new}, {old})
    fleet.ended_process(old, "drained")
    assert (fleet.all, fleet.problems()) == ([new], ["worker 1: starting"])
    fleet.ended_process(new, "killed")
    assert (fleet.all, fleet.problems()) == ([], ["worker 1: killed"])


async def test_a_suspended_worker_is_a_problem() -> None:
    worker = Worker(1, b"[[], [], {}]")
    fleet = fleet_of(1, worker)
    await fleet.ask_how_they_are()
    worker.body = b""
    fleet = fleet_of(1, worker)
    await fleet.ask_how_they_are()
    assert fleet.problems() == [f"worker 1: {DOES_NOT_REPLY}"]


async def test_the_rows_of_all_workers_that_reply() -> None:
    row = (
        b'{"kind": "k", "broker": 1, "entity": {}, "mode": "enforce", '
        b'"limit": 9, "rate": 2, "throttled": false}'
    )
    fleet = fleet_of(3, Worker(1, b"[" + row + b"]"), Worker(2, b"[" + row + b"]"), Worker(3, b""))
    (merged,) = await fleet.quota_rows()
    assert (merged["limit"], merged["rate"]) == (9, 4)


async def test_one_worker_replies_to_the_console_and_the_overview_is_that_of_all() -> None:
    overview = {"workers": 1, "max_connections": 5, "listeners": [], "sharing": None}
    reply = encode_reply(ConsoleReply(200, msgspec.json.encode(overview)))
    fleet = fleet_of(2, Worker(1, reply), Worker(2, reply))
    for worker in fleet.running.values():
        worker.replied = True
    assert (await fleet.console(ConsoleRequest(EXPLAIN))).body == msgspec.json.encode(overview)
    merged = await fleet.console(ConsoleRequest(OVERVIEW))
    assert msgspec.json.decode(merged.body)["max_connections"] == 10


async def test_the_console_asks_a_worker_that_serves_clients_first() -> None:
    """Another one does not know the cluster, or the quotas of the store."""
    starts, serves = (Worker(n, encode_reply(ConsoleReply(200, text))) for n, text in ((1, b"1"), (2, b"2")))
    fleet = fleet_of(2, starts, serves)
    for worker in (starts, serves):
        worker.replied = True
    serves.problems = []
    assert (await fleet.console(ConsoleRequest(CHANGE))).body == b"2"


async def test_a_change_without_a_reply_is_not_sent_to_another_worker() -> None:
    """It may have been made."""
    fleet = fleet_of(2, Worker(1, b""), Worker(2, encode_reply(ConsoleReply(200, b"{}"))))
    assert (await fleet.console(ConsoleRequest(CHANGE))).status == 503, "no worker has replied yet"
    for worker in fleet.running.values():
        worker.replied = True
    assert (await fleet.console(ConsoleRequest(CHANGE))).status == 504
    assert (await fleet.console(ConsoleRequest(EXPLAIN))).status == 200
