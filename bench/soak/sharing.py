"""sharing: three proxies in front of three brokers hold one limit together, whatever happens to them.

Processes join, leave, are killed and suspended, and the topic by which they share loses its leader and is
deleted. At each proxy, a producer of one tenant sends as much as it may to a broker of its own. The tenant
has one limit for the cluster (`scope: cluster`). The brokers' timestamps of the batches show what all proxies
admit together.

It demands that in any five seconds all proxies together admit at most 1.05 times the limit, whatever happens.
While the leader of the topic is down, clients of its partitions cannot send. The five seconds after that may
have in addition the tokens that one proxy with the same traffic would have saved, at most `burst_seconds` of
the limit. It also demands means: see LEAST, LEAST_WITH_FAULTS and LEAST_WITHOUT_BROKER.
"""

import random
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from operator import gt
from statistics import fmean, pstdev
from typing import Any, Final

from bench.soak.scenario import Outcome, Run, Scenario
from proxy.demo.embedded_kafka import EmbeddedKafka
from tests.support.kafka.flood import producing
from tests.support.kafka.rates import per_second
from tests.support.kafka.topics import appended, describe_topic, drop_topic, leaders, make_topic
from tests.support.process.pauses import Pauses
from tests.support.process.proxy_process import ProxyProcess
from tests.support.waiting import wait_until

JOINS: Final = 100
"""How often a fourth process joins, and leaves: in turn by SIGTERM and by SIGKILL."""
ROUNDS: Final = 3
"""How often each other fault happens."""
LIMIT: Final = 400_000
"""Bytes per second."""
TENANT: Final = "soak-sharing"
SHARES: Final = "soak-sharing-shares"
TOPICS: Final = tuple(f"{TENANT}-{name}" for name in "abcd")
"""Those of the three proxies, led by brokers 1 to 3, and that of the process that joins."""
SETTLING: Final = 4.0
"""Seconds until the parts of the limit have settled."""
STEADY_SECONDS: Final = 20.0
STAY_SECONDS: Final = (0.5, 2.0)
"""For how long a process that has joined stays: bounds of a random time."""
SUSPENDED_SECONDS: Final = 10.0
TAKEN_OVER: Final = 3
"""Seconds after which the part of a killed or suspended process must be in use."""
MOST: Final = 1.05
"""The most that all admit in any five seconds, as a part of the limit."""
BURST_SECONDS: Final = 1.0
"""The burst of a limit, in seconds of it: `burst_seconds` of the proxies."""
LEAST: Final = 0.98
"""The least that all admit while nothing happens, as a part of the limit."""
LEAST_WITH_FAULTS: Final = 0.9
"""The same over a phase in which processes are killed: the part of each is unused for up to TAKEN_OVER."""
LEAST_WITHOUT_BROKER: Final = 0.6
"""The same over a phase in which a broker is killed: its producer waits, and the proxy of this producer keeps
its part while the topic has no leader.
"""
DEVIATION: Final = 0.15
"""The largest coefficient of variation of one-second rates while nothing happens."""
LATE: Final = 1.2
"""In a short run, seconds of the limit: the burst, and what a broker on a busy machine appends late."""


@dataclass(frozen=True)
class Phase:
    """A part of the run; times are time.time()'s."""

    name: str
    began: float
    ended: float
    steady: bool = False
    """Whether nothing happens."""
    least: float = LEAST_WITH_FAULTS
    clients_wait: bool = False
    """Whether clients cannot send for a while, so that a burst follows."""


class Group:
    """The proxies, what happens to them, and when."""

    def __init__(self, run: Run) -> None:
        self.phases: Final[list[Phase]] = []
        self._kafka: Final = run.kafka
        quotas = [{"entity": {"client-id": TENANT}, "scope": "cluster", "producer_byte_rate": LIMIT}]
        settings = {"quotas": {"store": "none"}, "sharing": {"topic": SHARES}}
        self._short: Final = run.short
        upstream = run.kafka.bootstrap
        *self.proxies, self.guest = [
            ProxyProcess(run.folder / name, upstream, quotas, settings=settings, fork=run.short)
            for name in "abcd"
        ]

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run the three proxies with their producers in the block."""
        with ExitStack() as stack:
            stack.callback(self.guest.kill)
            for proxy in self.proxies:
                stack.enter_context(proxy)
            self.wait_for_all()
            for proxy, topic in zip(self.proxies, TOPICS[:3], strict=True):
                stack.enter_context(producing(proxy, topic, TENANT))
            self.let_pass(0.0 if self._short else SETTLING)
            yield

    def wait_for_all(self) -> None:
        """Wait until exactly the three proxies share, and none has a warning."""
        for proxy in self.proxies:
            wait_until(partial(_shares, proxy), "three processes that share", 120)

    @staticmethod
    def let_pass(seconds: float) -> None:
        """Let the producers send for this time."""
        until = time.time() + seconds
        wait_until(lambda: time.time() >= until, "the producers to have sent", seconds + 60)

    @contextmanager
    def phase(self, name: str, **more: Any) -> Iterator[None]:
        """Record the time of the block as a phase."""
        began = time.time()
        yield
        self.phases.append(Phase(name, began, time.time(), **more))

    def steady(self) -> None:
        with self.phase("nothing happens", steady=True, least=LEAST):
            self.let_pass(STEADY_SECONDS)

    def visit(self, number: int) -> None:
        """A fourth process joins, serves a producer, and leaves."""
        self.guest.start().wait_ready()
        with producing(self.guest, TOPICS[3], TENANT):
            wait_until(lambda: _used(self.guest), "the first bytes through the process that has joined")
            self.let_pass(STAY_SECONDS[0] if self._short else random.uniform(*STAY_SECONDS))
            if number % 2 == 0:
                self.guest.stop()
            else:
                self.guest.process.kill()
                self.guest.process.wait()
        self.wait_for_all()

    def kill(self) -> None:
        """Kill a proxy, let the others take its part, and start it again."""
        with self.phase("a process is killed, and starts again"):
            self.proxies[1].process.kill()
            self.proxies[1].process.wait()
            self._others_have_all("the part of a killed process is taken over")
            self.proxies[1].start().wait_ready()
            self.wait_for_all()
            self.let_pass(SETTLING)

    def suspend(self) -> None:
        """Suspend a proxy for ten seconds."""
        with self.phase("a process is suspended for 10 s"):
            self.proxies[2].process.send_signal(signal.SIGSTOP)
            began = time.time()
            self._others_have_all("the part of a suspended process is taken over")
            self.let_pass(began + SUSPENDED_SECONDS - time.time())
            self.proxies[2].process.send_signal(signal.SIGCONT)
            self.wait_for_all()
            self.let_pass(SETTLING)

    def _others_have_all(self, name: str) -> None:
        self.let_pass(TAKEN_OVER)
        with self.phase(name, least=LEAST):
            self.let_pass(5.0)

    def kill_leader(self) -> None:
        """Kill the broker that leads the topic of the shares, and start it again."""
        leader = leaders(self._kafka, SHARES)[0]
        before = self._complaints()
        name = "the leader of the topic is killed, and starts again"
        with self.phase(name, least=LEAST_WITHOUT_BROKER, clients_wait=True):
            self._kafka.kill(leader)
            try:
                wait_until(lambda: all(map(gt, self._complaints(), before)), "the proxies to notice")
                self.wait_for_all()
            finally:
                self._kafka.start(leader)
            self.wait_for_all()
            self.let_pass(SETTLING)

    def _complaints(self) -> list[int]:
        """How often each proxy has logged that it cannot use the topic, or gets no reports."""
        what = f"sharing: (topic {SHARES}: |no report)"
        return [len(proxy.log_lines(what)) for proxy in self.proxies]

    def delete_topic(self) -> None:
        """Delete the topic of the shares: a process creates it again."""
        before = describe_topic(self._kafka.port(1), SHARES).topic_id
        with self.phase("the topic is deleted"):
            drop_topic(self._kafka, SHARES)
            wait_until(
                lambda: describe_topic(self._kafka.port(1), SHARES).topic_id not in {before, None},
                "a new topic",
            )
            self.wait_for_all()
            self.let_pass(SETTLING)


def _shares(proxy: ProxyProcess) -> bool:
    return (
        proxy.metric("quota_proxy_instances") == 3
        and proxy.metric("quota_proxy_sharing_degraded") == 0
        and '"warnings": []' in proxy.get("/readyz")[1]
    )


def _used(proxy: ProxyProcess) -> bool:
    return proxy.metric("quota_proxy_client_bytes_total", direction="in", client_id=TENANT) > 0


def run(run: Run) -> Outcome:
    """Let processes join and leave, cause the other faults, and compare what all admit with the limit."""
    outcome = Outcome()
    _make_topics(run.kafka)
    group = Group(run)
    with group.running(), Pauses() as pauses:
        if not run.short:
            group.steady()
        joins = run.amount(JOINS, 2)
        with group.phase(f"{joins} processes join and leave"):
            for number in range(joins):
                group.visit(number)
        for _ in range(run.amount(ROUNDS, 0)):
            for fault in (group.kill, group.suspend, group.kill_leader, group.delete_topic):
                fault()
        ended = time.time()
    pieces = [piece for topic in TOPICS for piece in appended(run.kafka, topic)]
    for phase in group.phases:
        seconds = int(phase.ended - phase.began)
        rates = per_second(pieces, phase.began, seconds)
        paused = pauses.by_second(phase.began, seconds, time.time)
        figures = figures_of(rates, paused)
        outcome.figures.setdefault(phase.name, []).append({"seconds": seconds, **figures})
        check(phase, figures, outcome, short=run.short)
    whole = [proxy for proxy in (*group.proxies, group.guest) if proxy.log_lines("Traceback|ERROR")]
    outcome.check(not whole, f"logs have errors: {[proxy.log_file for proxy in whole]}")
    outcome.figures["seconds"] = round(ended - group.phases[0].began, 1)
    return outcome


def _make_topics(kafka: EmbeddedKafka) -> None:
    for topic, brokers in zip(TOPICS, ([1, 2, 3], [2, 3, 1], [3, 1, 2], [1, 2, 3]), strict=True):
        make_topic(kafka, topic, on=[brokers], message_timestamp_type="LogAppendTime", min_insync_replicas=1)
    make_topic(kafka, SHARES, on=[[3, 1, 2]], message_timestamp_type="LogAppendTime", min_insync_replicas=1)


def figures_of(rates: Sequence[int], paused: Sequence[float]) -> dict[str, Any]:
    """The rates of a phase, by second, as parts of the limit; `around`: from five seconds before the most in
    five seconds to five after it.

    paused  for how long the machine paused in the second before, and in each second
    """
    fives = [
        (sum(rates[first : first + 5]) / LIMIT - sum(paused[first : first + 6])) / 5
        for first in range(len(rates) - 4)
    ]
    worst = fives.index(max(fives)) if fives else 0
    after_burst = [five - tokens / 5 for five, tokens in zip(fives, _saved(rates), strict=False)]
    return {
        "mean": round(fmean(rates) / LIMIT, 3),
        "deviation": round(pstdev(rates) / max(fmean(rates), 1.0), 3),
        "most_in_5_s": round(max(fives, default=0.0), 3),
        "most_after_burst": round(max(after_burst, default=0.0), 3),
        "around": [round(rate / LIMIT, 2) for rate in rates[max(worst - 5, 0) : worst + 10]],
        "paused": round(sum(paused), 2),
    }


def _saved(rates: Sequence[int]) -> list[float]:
    """The tokens that one process with this traffic has at the begin of each second, in seconds of the limit.
    It has none at first.
    """
    tokens, saved = 0.0, []
    for rate in rates:
        saved.append(max(tokens, 0.0))
        tokens = max(min(tokens + 1.0 - rate / LIMIT, BURST_SECONDS), -BURST_SECONDS)
    return saved


def check(phase: Phase, figures: dict[str, Any], outcome: Outcome, *, short: bool) -> None:
    """Compare the figures of a phase with the rules. A short run is too short for all but the mean."""
    seconds = phase.ended - phase.began
    paused = figures["paused"] / seconds
    mean, most = figures["mean"], figures["most_after_burst" if phase.clients_wait else "most_in_5_s"]
    if short:
        outcome.check(mean <= MOST + LATE / seconds, f"{phase.name}: {mean} of the limit in {seconds:.0f} s")
        return
    outcome.check(most <= MOST, f"{phase.name}: {most} of the limit in five of {figures['around']}")
    outcome.check(mean >= phase.least - paused, f"{phase.name}: {mean} of the limit")
    if phase.steady:
        even = figures["deviation"]
        outcome.check(even <= DEVIATION + paused, f"{phase.name}: a coefficient of variation of {even}")


SCENARIO: Final = Scenario(
    "sharing", "three proxies have one limit while processes join and leave 200 times", run, brokers=3
)
