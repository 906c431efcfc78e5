"""`python -m bench.replication.plans`: the CPU of a follower's fetch while throttled replicas wait for bytes.

A relay gets the requests of one follower and the responses of its leader, without sockets. In each fetch,
some in-sync replicas have new records, as with producers on the same brokers, and a number of throttled
replicas waits for bytes that the throttle does not have. CPU times are those of the thread, so other work on
the machine changes them little. The output says whether the compiled or the interpreted sources ran.
"""

import argparse
import time
from typing import Final

from bench.options import add_quick, add_rounds
from proxy.quota.engine import QuotaEngine
from proxy.quota.kinds.replication import kind
from proxy.quota.limits.limits import Limits
from proxy.quota.limits.resources import Resources
from proxy.relay.counters.traffic import Traffic
from proxy.relay.relay import Relay
from proxy.relay.settings import RelaySettings
from proxy.wire.addresses import Unchanged
from proxy.wire.api_keys import FETCH
from proxy.wire.edit import i16, i32, i64
from proxy.wire.fetch.request import write_topics
from proxy.wire.fetch.rewrite import empty_partition, fetch_response, write_partitions
from proxy.wire.topic_names import TopicNames

VERSION: Final = 18
FOLLOWER: Final = 2
SESSION: Final = 12345
MOVED: Final = b"moved".ljust(16)
STEADY: Final = b"steady".ljust(16)
ACTIVE: Final = 20
"""In-sync replicas with new records in each fetch."""
BEHIND: Final = 1000
"""The high watermark of the replicas that wait; they are at offset 0."""
BETWEEN_FETCHES: Final = 0.002
"""Seconds on the simulated clock."""
BEFORE: Final = 200
"""The epoch of the first fetch that is measured; those before it warm up."""


class Names(TopicNames):
    """Resolves topic ids, which are the padded names in this benchmark."""

    def look_up(self, topic_id: bytes) -> str:
        return topic_id.rstrip().decode()


def entry(partition: int, offset: int) -> bytes:
    """Encode a partition of a Fetch request, from this offset on."""
    return i32(partition) + i32(1) + i64(offset) + i32(1) + i64(0) + i32(1 << 20) + b"\0"


def request(number: int, session: tuple[int, int], topics: dict[bytes, list[bytes]]) -> bytes:
    """Encode a follower's Fetch with this correlation id. `session`: the session's id and epoch."""
    state = i32(FOLLOWER) + i64(-1) + b"\0"
    body = (
        i16(FETCH) + i16(VERSION) + i32(number) + i16(-1) + b"\0"
        + i32(500) + i32(1) + i32(10 << 20) + b"\0" + i32(session[0]) + i32(session[1])
        + write_topics(VERSION, topics, {})
        + b"\1" + b"\1\1" + bytes([len(state)]) + state
    )  # fmt: skip
    return i32(len(body)) + body


def response(number: int, topics: dict[bytes, list[bytes]]) -> bytes:
    """Encode the leader's response to the request with this correlation id."""
    written = write_partitions(VERSION, topics)
    return fetch_response(VERSION, number, session_id=SESSION, topics=len(topics), written=written)


def reported(partition: int, high_watermark: int) -> bytes:
    """Encode a partition of a response, without records."""
    return empty_partition(VERSION, partition, (high_watermark, high_watermark, 0))


class Follower:
    """A follower's connection through a relay, with `throttled` replicas that wait for bytes: the leader's
    throttle has a rate of 0.
    """

    def __init__(self, throttled: int) -> None:
        topics = {"moved": {"leader.replication.throttled.replicas": "*"}}
        brokers = {"1": {"leader.replication.throttled.rate": "0"}}
        quota = kind.Replication()
        quota.join(1, [])
        engine = QuotaEngine([quota])
        engine.configure(Limits({}, resources=Resources(topics, brokers)), 1000.0)
        settings = RelaySettings(max_frame_bytes=100 << 20, between_brokers=True, topic_names=Names())
        self.relay: Final = Relay(
            engine, Unchanged(), Traffic(), settings, principal="u", client_address="127.0.0.1", node_id=1
        )
        self.now = 1000.0
        self.number = 0
        self.offset = 0
        self.theirs = 0
        """The session id that the relay has given to the follower."""
        asked = {STEADY: [entry(partition, 0) for partition in range(ACTIVE)]}
        told = {STEADY: [reported(partition, 0) for partition in range(ACTIVE)]}
        if throttled:
            asked[MOVED] = [entry(partition, 0) for partition in range(throttled)]
            told[MOVED] = [reported(partition, BEHIND) for partition in range(throttled)]
        self.exchange((0, 0), asked, told)
        self.fetch(1)
        omitted = sum(replica.omitted_since > 0.0 for replica in quota.shared.replicas.values())
        if omitted != throttled:
            raise RuntimeError(f"{omitted} replicas wait, not {throttled}")

    def exchange(
        self, session: tuple[int, int], asked: dict[bytes, list[bytes]], told: dict[bytes, list[bytes]]
    ) -> None:
        """Send a request, and get the response to it."""
        self.number += 1
        relay = self.relay
        relay.receive_from_client(request(self.number, session, asked), self.now)
        if not relay.output.to_broker:
            raise RuntimeError("the relay has forwarded no request")
        relay.broker_took_all()
        self.now += BETWEEN_FETCHES / 2
        relay.receive_from_broker(response(self.number, told), self.now)
        got = b"".join(relay.output.to_client)
        if not got:
            raise RuntimeError("the relay has forwarded no response")
        if not self.theirs:
            self.theirs = int.from_bytes(got[15:19], "big")
        self.now += BETWEEN_FETCHES / 2

    def fetch(self, epoch: int) -> None:
        """Make an incremental fetch of the replicas that have got records."""
        self.offset += 1
        asked = {STEADY: [entry(partition, self.offset) for partition in range(ACTIVE)]}
        told = {STEADY: [reported(partition, self.offset + 1) for partition in range(ACTIVE)]}
        self.exchange((self.theirs, epoch), asked, told)


def measure(throttled: int, fetches: int) -> float:
    """Return the CPU microseconds of a fetch while this number of throttled replicas waits."""
    follower = Follower(throttled)
    for epoch in range(2, BEFORE):
        follower.fetch(epoch)
    began = time.thread_time()
    for epoch in range(BEFORE, BEFORE + fetches):
        follower.fetch(epoch)
    return (time.thread_time() - began) / fetches * 1e6


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m bench.replication.plans", description=__doc__)
    parser.add_argument(
        "--throttled",
        type=int,
        nargs="+",
        default=[0, 400, 4000, 40_000],
        metavar="N",
        help="numbers of throttled replicas that wait (default: %(default)s)",
    )
    parser.add_argument(
        "--fetches", type=int, default=1000, help="fetches that are measured (default: %(default)s)"
    )
    add_rounds(parser, "rounds, of which the best counts", 3)
    add_quick(parser, "one round of 20 fetches")
    options = parser.parse_args()
    fetches, rounds = (20, 1) if options.quick else (options.fetches, options.rounds)
    print(f"{'compiled' if kind.__file__.endswith('.so') else 'interpreted'}, {ACTIVE} replicas with records")
    for throttled in options.throttled:
        found = min(measure(throttled, fetches) for _ in range(rounds))
        print(f"{throttled:6} throttled replicas that wait: {found:8.0f} us a fetch", flush=True)


if __name__ == "__main__":
    main()
