"""Topic names that a broker puts into the hash table of its response.

Kafka's responses to Metadata, DeleteTopics and DescribeTopicPartitions keep their topics in a table like that
of keyed arrays, by name. Its size is not known before, so it grows, each time by moving all elements, which
takes a time that is proportional to the cube of the number of equal keys. Topics that the cluster does not
have, requested by id, have no name: all of them are equal. With Kafka 4.3.1, a Metadata request of 2,500
made-up ids (45 KB) occupies a request handler thread for 5.5 s of processor time, and DeleteTopics longer.
The response to an invalid request has its names as the client repeats them.
"""

from typing import Final

from mypy_extensions import i64 as native

from proxy.wire.api_keys import DELETE_TOPICS, DESCRIBE_TOPIC_PARTITIONS, METADATA, api_name
from proxy.wire.errors import Malformed, Short
from proxy.wire.keyed.keyed_arrays import (
    STEPS_FREE,
    UNCHECKED,
    java_hash,
    most_equal,
)
from proxy.wire.reader import Reader

UNNAMED_AT_MOST: Final[native] = 766
"""The most topics by id: with one more, the table grows again. A broker that has none of them needs 0.08 s of
processor time for 383 to 766, and 0.57 s for 767.
"""
TOPICS_AT_MOST: Final[native] = 20_000
"""512 KiB have room for as many names of 25 bytes. The event loop serves nobody else while it reads them: it
takes 25 ms of processor time compiled.
"""
STEPS_PER_TOPIC: Final = 10_000
"""The steps that a broker may take for each topic, if all take more than STEPS_FREE. Numbered names take up
to 4,200.
"""
FIRST_SLOTS: Final[native] = 5
"""The slots of the smallest table. The next one has twice as many and one. A table of 2n + 1 slots grows
before the n-th element is added.
"""
NEWEST: Final = {METADATA: 13, DELETE_TOPICS: 6, DESCRIBE_TOPIC_PARTITIONS: 0}
FLEXIBLE_FROM: Final = {METADATA: 9, DELETE_TOPICS: 4, DESCRIBE_TOPIC_PARTITIONS: 0}


def check_topic_names(
    pieces: list[bytes],
    body_at: int,
    api_key: int,
    api_version: int,
    complete: bool = True,
    most_unnamed: int = UNNAMED_AT_MOST,
) -> int:
    """Raise Malformed if the topics of a request would occupy a broker; return for how many topics the time
    has been taken that it takes to check a name. `pieces` is its frame, or, if it is not `complete`, the
    first part; `body_at` is the offset behind the client id; `most_unnamed`: the most topics by id.

    A request that ends too early is left to the broker, which does not execute it.
    """
    if api_version > NEWEST.get(api_key, -1):
        return 0
    flexible = api_version >= FLEXIBLE_FROM[api_key]
    reader = Reader(pieces, body_at)
    hashes: list[int] = []
    try:
        if flexible:
            reader.skip_tags()
        _read(reader, api_key, api_version, flexible, hashes, most_unnamed)
    except Short as error:
        if not complete:
            raise Malformed(f"{api_name(api_key)} that is too large for its topics to be checked") from error
    number: native = len(hashes)
    if number <= UNCHECKED:
        return 0
    steps = growing_cost(hashes)
    if most_equal(hashes) > UNCHECKED or steps > max(STEPS_FREE, STEPS_PER_TOPIC * number):
        raise Malformed(f"{api_name(api_key)} with {number} topics whose names are equal or collide")
    return number


def _read(
    reader: Reader,
    api_key: int,
    version: native,
    flexible: bool,
    hashes: list[int],
    most_unnamed: native,
) -> None:
    """Add the hash code of each name."""
    id_before = api_key == METADATA and version >= 10
    id_behind = api_key == DELETE_TOPICS and version >= 6
    tagged = flexible and not (api_key == DELETE_TOPICS and version < 6)
    left = reader.count(flexible)
    if left > TOPICS_AT_MOST:
        raise Malformed(f"{api_name(api_key)} with an array of {left} topics")
    unnamed: native = 0
    while left > 0:
        if id_before:
            reader.take(16)
        name = reader.raw_string(flexible)
        if id_behind:
            reader.take(16)
        if tagged and not reader.skip_no_tags():
            reader.skip_tags()
        if name:
            hashes.append(java_hash(name))
        else:
            unnamed += 1
            if unnamed > most_unnamed:
                raise Malformed(
                    f"{api_name(api_key)} of more than {most_unnamed} topics by id (limits.max_topics_by_id)"
                )
        left -= 1


def growing_cost(hashes: list[int]) -> int:
    """The steps that it takes to add all elements to a table that grows: those to move its elements.

    A broker adds the topics in an order of its own. So where the table has only a part of them, this is the
    cost of one of several parts of that size: of the dearest one.
    """
    number: native = len(hashes)
    slots: native = FIRST_SLOTS
    total: native = 0
    while slots // 2 <= number:
        room = slots // 2 - 1
        if room > UNCHECKED:
            parts = (number + room - 1) // room
            dearest: native = 0
            first: native = 0
            while first < parts:
                steps = _moving_cost(hashes, first, parts, slots)
                if steps > dearest:
                    dearest = steps
                first += 1
            total += dearest
        slots = 2 * slots + 1
    return total


def _moving_cost(hashes: list[int], first: native, parts: native, slots: native) -> native:
    """moving_cost() of every `parts`-th element from the first on. Counting is quicker than sorting."""
    counts = [0] * slots
    number: native = len(hashes)
    at = first
    while at < number:
        code: native = hashes[at]
        counts[(code & 0x7FFF_FFFF) % slots] += 1
        at += parts
    total: native = 0
    length: native = 0
    distance: native = 0
    displaced: native = 0
    for count in counts:
        here: native = count
        if here + displaced == 0:
            total += length * distance
            length = distance = 0
        else:
            displaced += here - 1
            distance += displaced
            length += 1
    # The rest lies behind the last slot.
    return total + (length + displaced) * (distance + displaced * (displaced - 1) // 2)
