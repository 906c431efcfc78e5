"""The bounds that pages name are those of the code."""

import re
from pathlib import Path
from typing import NamedTuple

import pytest
from mypy_extensions import i64

from proxy.admin.configs.describe import MAX_REPEATED_BYTES, RESOURCES_AT_A_TIME
from proxy.admin.yielder import STEPS
from proxy.quota.kinds.topic_partition_bytes.buckets import PARTITIONS_AT_MOST
from proxy.quota.measure.buckets import BUCKETS_AT_MOST, NAME_BYTES_AT_MOST
from proxy.quota.usage import MAX_CLIENTS, MAX_TALLIES
from proxy.relay.budgets.id_budget import IDS_AT_MOST
from proxy.relay.budgets.read_turns import FRAMES, FREE_FRAMES
from proxy.relay.fetch.gate import LONGEST_WAIT_SECONDS
from proxy.relay.fetch.plan_turns import PAUSE_SECONDS_PER_PARTITION
from proxy.relay.fetch.sessions import MAX_PARTITIONS
from proxy.relay.frame_buffer import MAX_BUFFERED_FRAME_BYTES
from proxy.relay.inflight import FREE_IN_FLIGHT, MAX_IN_FLIGHT, SHARED_IN_FLIGHT
from proxy.relay.intercepted import MAX_DESCRIBE_BYTES
from proxy.relay.requests.buffer import LARGE_FRAME_SECONDS
from proxy.relay.requests.requests import DONE_AT_ONCE, UNSUPPORTED_WEIGHT
from proxy.relay.responses.responses import STREAM_BYTES
from proxy.relay.responses.withheld_responses import SMALL_BYTES
from proxy.server.connection.bulk_reads import BULK_BYTES, TURN_BYTES
from proxy.server.listener.accept.handshake_turns import PAUSE_SECONDS
from proxy.server.listener.connections import MAX_UNSERVED
from proxy.server.logs.log_limit import LINES
from proxy.wire.apis.api_00_produce import MAX_READ
from proxy.wire.apis.api_10_find_coordinator import MAX_KEYS
from proxy.wire.frames import CUT_THROUGH_BYTES
from proxy.wire.reader import MAX_TAGS
from proxy.wire.topic_names import ASKED_AT_MOST

DOCS = Path(__file__).parents[3] / "docs"
ATTACKS, DESIGN = "attacks.md", "design.md"


class Bound(NamedTuple):
    """A sentence of a page, and the numbers in it."""

    page: str
    sentence: str
    """A regular expression with a group for each number."""
    numbers: tuple[float | i64, ...]


BOUNDS = [
    Bound(ATTACKS, r"turn of the event loop: ([\d,]+) steps", (STEPS,)),
    Bound(ATTACKS, r"A turn of the event loop has ([\d,]+) of them", (STEPS,)),
    Bound(DESIGN, r"Work on intercepted requests has ([\d,]+) steps", (STEPS,)),
    Bound(
        ATTACKS, r"A connection reads (\d+) requests at once, .* fewer than (\d+) such", (FREE_FRAMES, FRAMES)
    ),
    Bound(
        ATTACKS,
        r"After (\d+) of them, or (\d+) of unknown",
        (DONE_AT_ONCE, DONE_AT_ONCE / UNSUPPORTED_WEIGHT),
    ),
    Bound(
        ATTACKS,
        r"After (\d+) KiB of reads of (\d+) KiB or more",
        (TURN_BYTES >> 10, BULK_BYTES >> 10),
    ),
    Bound(ATTACKS, r"has at most ([\d,]+) requests in flight", (MAX_IN_FLIGHT,)),
    Bound(
        ATTACKS,
        r"Beyond (\d+) of each connection, all connections together have at most (\d+)",
        (FREE_IN_FLIGHT, SHARED_IN_FLIGHT),
    ),
    Bound(ATTACKS, r"More than ([\d,]+) topics or partitions close", (MAX_READ,)),
    Bound(ATTACKS, r"more than ([\d,]+) coordinators closes", (MAX_KEYS,)),
    Bound(
        ATTACKS,
        r"requests (\d+) resources at a time\..* configs have more than (\d+) MiB",
        (RESOURCES_AT_A_TIME, MAX_REPEATED_BYTES >> 20),
    ),
    Bound(ATTACKS, r"with more than ([\d,]+) tagged fields", (MAX_TAGS,)),
    Bound(ATTACKS, r"at most ([\d,]+) ids a second by id, ([\d,]+) for", (ASKED_AT_MOST, IDS_AT_MOST)),
    Bound(ATTACKS, r"a request must arrive within (\d+) s", (LARGE_FRAME_SECONDS,)),
    Bound(ATTACKS, r"of up to (\d+) bytes, are always delivered", (SMALL_BYTES,)),
    Bound(ATTACKS, r"session of more than ([\d,]+) partitions closes", (MAX_PARTITIONS,)),
    Bound(ATTACKS, r"waits for (\d+) microseconds per partition", (PAUSE_SECONDS_PER_PARTITION * 1e6,)),
    Bound(ATTACKS, r"then serves other connections for (\d+) ms", (PAUSE_SECONDS * 1e3,)),
    Bound(ATTACKS, r"At most ([\d,]+) connections of a listener wait to be closed", (MAX_UNSERVED,)),
    Bound(ATTACKS, r"logs at most (\d+) lines a second", (LINES,)),
    Bound(ATTACKS, r"([\d,]+) entries and (\d+) MiB of names", (BUCKETS_AT_MOST, NAME_BYTES_AT_MOST >> 20)),
    Bound(ATTACKS, r"at most ([\d,]+) buckets of partitions per broker", (PARTITIONS_AT_MOST,)),
    Bound(DESIGN, r"\| buckets of one quota \| ([\d,]+);", (BUCKETS_AT_MOST,)),
    Bound(DESIGN, r"\| ([\d,]+) clients and ([\d,]+) events per listener", (MAX_CLIENTS, MAX_TALLIES)),
    Bound(DESIGN, r"Fetch responses of (\d+) KiB or more are forwarded", (STREAM_BYTES >> 10,)),
    Bound(DESIGN, r"Frames over (\d+) MiB are cut through", (CUT_THROUGH_BYTES >> 20,)),
    Bound(DESIGN, r"requests over (\d+) MiB share", (CUT_THROUGH_BYTES >> 20,)),
    Bound(DESIGN, r"buffered up to (\d+) MiB \(if", (MAX_BUFFERED_FRAME_BYTES >> 20,)),
    Bound(DESIGN, r"DescribeClientQuotas up to (\d+) MiB", (MAX_DESCRIBE_BYTES >> 20,)),
    Bound(ATTACKS, r"there is no debt; after (\d+) s, it goes on", (LONGEST_WAIT_SECONDS,)),
]


@pytest.mark.parametrize("bound", BOUNDS, ids=lambda bound: f"{bound.page}: {bound.sentence}")
def test_a_page_names_the_bound_of_the_code(bound: Bound) -> None:
    text = " ".join((DOCS / bound.page).read_text().split())
    found = re.search(bound.sentence, text)
    assert found is not None
    numbers = [float(each.replace(",", "")) for each in found.groups() if each is not None]
    assert numbers == pytest.approx(bound.numbers)
