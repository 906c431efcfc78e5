"""WaitingReplicas: the replicas of a follower's session that wait for bytes, and the order in which they get
them.

A replica that falls behind joins at the end, and one that gets bytes joins again at the end if it is still
behind after them. So they take turns, and none starves. The order has several queues: replicas of one queue
have the same throttles, and have all fetched something or all nothing. If the first of a queue gets no bytes,
the others of the queue get none, either, so a plan looks only at the first.
"""

from collections import OrderedDict
from typing import Final, final

from proxy.quota.fetch.follower_plan import FollowerItem
from proxy.quota.kinds.replication.replica import FollowerSession, Replica
from proxy.quota.kinds.replication.throttle import Throttle


@final
class ReplicaQueue:
    """Waiting replicas that have the same throttles, and are all new or all not."""

    def __init__(self, throttles: list[Throttle], new: bool) -> None:
        self.throttles: Final = throttles
        self.new: Final = new
        """Whether its replicas have to wait for their start."""
        self.places: Final[OrderedDict[FollowerItem, int]] = OrderedDict()
        """The place of each replica in the order of all queues, ascending."""
        self.closed = False
        """Whether no further replica of it gets bytes from this plan."""
        self.lacking: list[Throttle] = []
        """The throttles that lack bytes for its replicas in this plan."""

    @property
    def first(self) -> FollowerItem:
        return next(iter(self.places))

    @property
    def first_place(self) -> int:
        return self.places[self.first]

    def open(self) -> None:
        """Begin a plan."""
        self.closed = len(self.places) == 0
        self.lacking = []


@final
class WaitingReplicas(FollowerSession):
    """The state of one session. Its replicas have one follower and one leader, so there are at most six
    queues: for the leader's throttle, the follower's and both, each with new replicas and with others.
    """

    def __init__(self) -> None:
        super().__init__()
        self.generation = -1
        """The generation of limits under which the replicas have been put into queues."""
        self.queues: Final[list[ReplicaQueue]] = []
        self._queue_of: Final[dict[FollowerItem, ReplicaQueue | None]] = {}
        """The queue of each item of the session; None if its replica does not wait."""
        self._last_place = 0

    @property
    def size(self) -> int:
        """The number of replicas that wait."""
        return sum([len(queue.places) for queue in self.queues])

    @property
    def new(self) -> int:
        """The number of those that wait for their start."""
        return sum([len(queue.places) for queue in self.queues if queue.new])

    def start_anew(self) -> list[FollowerItem]:
        """Empty the queues; return all items of the session, those that waited in their order."""
        by_place = {place: item for queue in self.queues for item, place in queue.places.items()}
        items = [by_place[place] for place in sorted(by_place)]
        items += [item for item, queue_of in self._queue_of.items() if queue_of is None]
        self.queues.clear()
        for item in self._queue_of:
            self._queue_of[item] = None
        self.again.clear()
        return items

    def take_again(self) -> list[FollowerItem]:
        """Return the items about which a plan decides anew, though the session reports no change."""
        items = list(self.again)
        self.again.clear()
        return items

    def drop(self, item: FollowerItem) -> None:
        """Forget an item that the session no longer has."""
        self.leave(item)
        self._queue_of.pop(item, None)
        self.again.pop(item, None)
        state = item.state
        if isinstance(state, Replica):
            state.leave(item)

    def wait(self, item: FollowerItem, throttles: list[Throttle], new: bool) -> None:
        """Have a replica wait: at the end, unless it waits already with the same throttles."""
        queue = self._queue_of.get(item)
        if queue is not None and queue.throttles is throttles and queue.new == new:
            return
        self.leave(item)
        self._last_place += 1
        queue = self._find(throttles, new)
        queue.places[item] = self._last_place
        self._queue_of[item] = queue

    def leave(self, item: FollowerItem) -> None:
        """Have a replica wait no longer."""
        queue = self._queue_of.get(item)
        if queue is not None:
            del queue.places[item]
        self._queue_of[item] = None

    def queue_of(self, item: FollowerItem) -> ReplicaQueue | None:
        """The queue in which an item waits; None if it does not wait."""
        return self._queue_of.get(item)

    def _find(self, throttles: list[Throttle], new: bool) -> ReplicaQueue:
        for queue in self.queues:
            if queue.throttles is throttles and queue.new == new:
                return queue
        queue = ReplicaQueue(throttles, new)
        self.queues.append(queue)
        return queue

    def open(self) -> None:
        """Begin a plan in all queues."""
        for queue in self.queues:
            queue.open()

    def next(self) -> ReplicaQueue | None:
        """The queue with the first replica that may get bytes; None if there is none."""
        found: ReplicaQueue | None = None
        least = 0
        for queue in self.queues:
            if not queue.closed:
                place = queue.first_place
                if found is None or place < least:
                    found, least = queue, place
        return found

    def next_new(self) -> ReplicaQueue | None:
        """The queue with the first replica that waits for its start."""
        found: ReplicaQueue | None = None
        for queue in self.queues:
            if queue.new and queue.places and (found is None or queue.first_place < found.first_place):
                found = queue
        return found
