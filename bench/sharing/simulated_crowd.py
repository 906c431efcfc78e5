"""Crowd: simulated processes that share the limits of many entities, the clients of these, and faults.

It runs the code of the proxy (`proxy/quota/sharing`) on a simulated clock. Each entity has clients at one to
four processes. Most send far less than their limits. The hot ones have connections that send as much as they
may.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from random import Random
from typing import Final

from proxy.quota.identity import Identity
from proxy.quota.measure.bucket import Bucket
from proxy.quota.sharing.waterfill import RESERVE
from tests.support.sharing.simulation import REVIEW_SECONDS, STEP, Connection, Process, Simulation

LIMIT: Final = 1e6
"""Units per second, of each entity."""
SIZE: Final = 20e3
"""Units of a request of a hot entity."""
COLD_USE: Final = 0.005
"""The part of its limit that a request of a cold entity uses; each sends one in ten seconds."""
CONNECTIONS: Final = (1, 2, 4)
"""The numbers of connections that a hot entity may have at a process."""
SETTLING: Final = 6.0
"""Seconds after which the parts of the limits have settled."""
FAULTS: Final = ("kill", "start", "suspend", "continue", "move", "move", "move", "move")
"""What Crowd.fault() chooses from: in half of the cases, demand moves."""


@dataclass(frozen=True)
class Plan:
    """How much is simulated: `processes` that share the limits of `entities`, of which `hot` are in use, and
    `quiet` seconds without faults before and after `faults` seconds with them.
    """

    processes: int = 100
    entities: int = 100_000
    hot: int = 200
    quiet: float = 10.0
    faults: float = 30.0
    seed: int = 1


class CrowdProcess(Process):
    """A process that knows only the entities whose clients have come to it.

    Its work is in proportion to the requests that it serves: connections that wait take no time.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        self.hot: set[int] = set()
        """The hot entities whose clients have come to it."""
        self.tenths: dict[int, dict[int, float]] = {}
        """By hot entity: the use in each tenth of a second."""
        self._connected: dict[int, list[Connection]] = {}
        self._due: list[tuple[float, int, Connection]] = []
        """When each connection is to be served: a heap."""
        self._numbers = count()
        self._cold: list[Bucket] = []

    @property
    def serves(self) -> bool:
        return self.running and not self.stopped

    def meet_cold(self, entity: int, now: float) -> None:
        """Let clients of an entity come that use little."""
        self._cold.append(self.meet(entity, now))

    def connect_hot(self, entity: int, connections: int, now: float) -> None:
        """Let clients of a hot entity come, with this number of connections."""
        self.hot.add(entity)
        for _ in range(connections):
            number = next(self._numbers)
            who = Identity(f"u{entity}", f"{self.name}-{number}", "10.0.0.1")
            connection = Connection(who, SIZE, entity, ready_at=now)
            self._connected.setdefault(entity, []).append(connection)
            heappush(self._due, (now, number, connection))

    def disconnect(self, entity: int) -> int:
        """Let the clients of a hot entity go; return the number of their connections."""
        return len(self._connected.pop(entity, ()))

    def connected(self, entity: int) -> int:
        """Return the number of connections of a hot entity."""
        return len(self._connected.get(entity, ()))

    @property
    def all_connected(self) -> int:
        """The number of connections of all hot entities."""
        return sum(map(len, self._connected.values()))

    def use_a_little(self, now: float, random: Random) -> None:
        """Let each client of a cold entity send something once in ten seconds, on average."""
        if self.serves and self._cold:
            for bucket in random.choices(self._cold, k=int(len(self._cold) / 1000 + random.random())):
                bucket.record(COLD_USE * self.limit, now + self.skew)

    def _serve_all(self, now: float) -> None:
        due = self._due
        while due and due[0][0] <= now:
            _, number, connection = heappop(due)
            if connection not in self._connected.get(connection.entity, ()):
                continue
            self._serve(connection, now)
            # A review finds out whether the part of the limit has changed.
            at = now + STEP if connection.debt is None else min(connection.ready_at, now + REVIEW_SECONDS)
            heappush(due, (max(at, now + STEP), number, connection))

    def _use(self, bucket: Bucket, value: float, now: float, who: Identity | None, entity: int) -> float:
        of_entity = self.tenths.setdefault(entity, {})
        tenth = int(now * 10 + 1e-6)
        of_entity[tenth] = of_entity.get(tenth, 0.0) + value
        return bucket.record(value, now + self.skew, who)


@dataclass
class Crowd(Simulation):
    """All processes, and the clients of all entities."""

    plan: Plan = field(default_factory=Plan)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.random = Random(self.plan.seed)
        self.crowd: list[CrowdProcess] = []
        self.worst_parts = 0.0
        """The largest sum of the parts of a limit, less the reserves."""
        for number in range(self.plan.processes):
            self.begin(f"p{number}")
            # Processes look at their buckets at different moments.
            self.run(self.random.uniform(0.0, 4.0 / self.plan.processes))
        self.run(SETTLING)
        for entity in range(self.plan.hot, self.plan.entities):
            for process in self.random.sample(self.crowd, self.random.choice((1, 1, 2))):
                process.meet_cold(entity, self.now)
        for entity in self.hot:
            for process in self.random.sample(self.crowd, self.random.randint(1, 4)):
                process.connect_hot(entity, self.random.choice(CONNECTIONS), self.now)
        self.run(SETTLING)

    @property
    def hot(self) -> range:
        """The hot entities."""
        return range(self.plan.hot)

    @property
    def serving(self) -> list[CrowdProcess]:
        """The processes that run and are not suspended."""
        return [process for process in self.crowd if process.serves]

    def begin(self, name: str) -> CrowdProcess:
        """Start a process, whose clock is wrong by up to an hour."""
        skew = self.random.uniform(-3600.0, 3600.0)
        process = CrowdProcess(name, self.log, LIMIT, self.now, skew)
        self.processes.append(process)
        self.crowd.append(process)
        return process

    def go_on(self, seconds: float) -> None:
        """Run, with little traffic of all entities, and check the parts of the hot ones."""
        self.run(seconds, self._between)

    def _between(self, now: float) -> None:
        for process in self.crowd:
            process.use_a_little(now, self.random)
        if int(now * 100 + 1e-6) % 5 == 0:
            self._check_parts()

    def _check_parts(self) -> None:
        serving = self.serving
        together = [self.parts(entity, serving) for entity in self.hot]
        # All reserves of those that know each other are in the limit.
        apart = sum(process.sharing.stalled or not process.sharing.joined for process in serving)
        reserves = RESERVE * (apart + 1)
        self.worst_parts = max(self.worst_parts, max(together) - reserves)

    def parts(self, entity: int, processes: Sequence[CrowdProcess]) -> float:
        """Return the sum of the parts that these processes have of an entity's limit."""
        return sum(process.part(entity) for process in processes)

    def fraction(self, entity: int, process: CrowdProcess) -> float:
        """The fraction that a process has of all parts of an entity's limit. These add up to a little more or
        less than the limit while what was used too little or too much is settled.
        """
        whole = self.parts(entity, self.serving)
        return process.part(entity) / whole if whole > 0.0 else 0.0

    def connected_parts(self, entity: int) -> float:
        """The sum of the parts of the processes that have clients of the entity."""
        return self.parts(entity, [process for process in self.serving if process.connected(entity)])

    def used(self, entity: int, first: int, end: int, only: CrowdProcess | None = None) -> list[float]:
        """Return the units used in each of these tenths of a second: by the process `only`, or by all, those
        that have ended included.
        """
        sums = [0.0] * (end - first)
        for process in [only] if only else self.crowd:
            for tenth, value in process.tenths.get(entity, {}).items():
                if first <= tenth < end:
                    sums[tenth - first] += value
        return sums

    # What happens

    def kill(self, process: CrowdProcess) -> None:
        """Kill a process; its clients go to another one."""
        process.running = False
        other = self.random.choice(self.serving)
        for entity in process.hot:
            gone = process.disconnect(entity)
            if gone:
                other.connect_hot(entity, gone, self.now)

    def move(self, entity: int, to: CrowdProcess) -> None:
        """Move all clients of an entity to another process."""
        gone = sum(process.disconnect(entity) for process in self.crowd)
        to.connect_hot(entity, max(gone, 1), self.now)

    def fault(self) -> None:
        """Cause one of FAULTS, if it is possible now."""
        random, serving = self.random, self.serving
        what = random.choice(FAULTS)
        suspended = [process for process in self.crowd if process.running and process.stopped]
        if what == "kill" and len(serving) > self.plan.processes * 0.9:
            self.kill(random.choice(serving))
        elif what == "start" and len(serving) < self.plan.processes:
            new = self.begin(f"n{len(self.crowd)}")
            for entity in random.sample(self.hot, min(5, self.plan.hot)):
                new.connect_hot(entity, 1, self.now)
        elif what == "suspend" and len(suspended) < 3:
            random.choice(serving).stopped = True
        elif what == "continue" and suspended:
            random.choice(suspended).resume(self.now)
        elif what == "move":
            self.move(random.choice(self.hot), random.choice(serving))
