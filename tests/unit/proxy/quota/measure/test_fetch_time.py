import pytest

from proxy.quota.measure.fetch_time import fetch_seconds
from proxy.wire.fetch.session_sizes import UNCOUNTED
from proxy.wire.views import WITHHELD, RequestView, ResponseView

NONE = 12
"""Bytes of a response without partitions."""


def charged(
    seconds: float,
    *,
    wait_ms: int = 500,
    partitions: int = 1,
    body: int = 100,
    size: int = 0,
    min_bytes: int = 1,
) -> float:
    request = RequestView(1, 12, 1, "c", size)
    request.max_wait_ms = wait_ms
    request.min_bytes = min_bytes
    request.partitions = partitions
    response = ResponseView(12, True, body)
    response.service_seconds = seconds
    return fetch_seconds(request, response)


# partitions of the session, what Kafka 4.3.1 charges on a machine with a load of 14 to 20, and when responses
# to fetches with a max_wait_ms of 100 arrive: without partitions, and with all partitions but no records
MEASURED = [(1, 0.0004, 0.102), (100, 0.0008, 0.1025), (1000, 0.006, 0.109), (5000, 0.1, 0.252)]


@pytest.mark.parametrize(("partitions", "kafka", "at"), MEASURED)
def test_a_fetch_that_has_waited_costs_as_much_as_in_kafka_or_a_few_times_as_much(
    partitions: int, kafka: float, at: float
) -> None:
    for body in (NONE, 50 * partitions + 50):
        assert kafka <= charged(at, wait_ms=100, partitions=partitions, body=body) <= 6 * kafka


@pytest.mark.parametrize(("partitions", "most"), [(1, 0.01003), (1000, 0.04), (5000, 0.16)])
def test_the_number_of_partitions_limits_what_a_response_before_the_end_of_the_wait_costs(
    partitions: int, most: float
) -> None:
    assert charged(0.005, wait_ms=60_000, partitions=partitions) == pytest.approx(0.005)
    assert charged(9.0, wait_ms=60_000, partitions=partitions) == pytest.approx(most, rel=1e-4)


def test_the_sizes_of_a_request_and_its_response_raise_that_limit() -> None:
    assert charged(9.0, wait_ms=60_000, size=1 << 20, body=50 << 20) == pytest.approx(
        0.01003 + 200e-9 * (1 << 20) + 1e-9 * (50 << 20)
    )


@pytest.mark.parametrize("body", [NONE, 100, 50_000, 0, WITHHELD])
def test_work_that_takes_a_little_longer_than_max_wait_ms_is_not_free(body: int) -> None:
    """A client may choose a max_wait_ms that is a little shorter than the work. Then there is no wait."""
    work = 500 * 10e-6
    for late in (-0.0015, 0.0, 0.0005):
        cost = charged(0.005 + late, wait_ms=5, partitions=500, body=body)
        assert cost >= (0.001 if body == NONE else min(work, 0.005 + late))


def test_a_response_without_partitions_shows_that_the_broker_has_waited() -> None:
    assert charged(0.5, partitions=5000, body=NONE) == pytest.approx(0.001)
    assert charged(0.5, partitions=5000, body=17) == pytest.approx(0.051)


def test_the_end_of_a_wait_may_come_early() -> None:
    """Kafka's timer has steps of 1 ms."""
    assert charged(0.4985, body=NONE) == pytest.approx(0.001)
    assert charged(0.4975, body=NONE) == pytest.approx(0.01003, rel=1e-3)


# body, partitions, and the seconds that count of 0.3 by which the response is late
LATE = [
    (NONE, 1, 0.0011),
    (NONE, 300, 0.031),
    (100, 1, 0.00111),
    (612, 1, 0.00111),
    (613, 1, 0.30101),
    (20_000, 300, 0.034),
    (600_000, 6000, 0.361),
    (0, 1, 0.30101),
    (WITHHELD, 1, 0.30101),
]


@pytest.mark.parametrize(("body", "partitions", "counted"), LATE)
def test_a_fetch_without_records_costs_little_of_the_time_by_which_the_broker_is_late(
    body: int, partitions: int, counted: float
) -> None:
    """If the client has closed the connection, or the proxy withholds the response, its size says nothing."""
    assert charged(0.8, partitions=partitions, body=body) == pytest.approx(counted)


@pytest.mark.parametrize(("wait_ms", "min_bytes"), [(0, 1), (-1, 1), (500, 0), (500, -1)])
def test_a_fetch_for_which_no_broker_waits_costs_its_time(wait_ms: int, min_bytes: int) -> None:
    assert charged(0.3, wait_ms=wait_ms, min_bytes=min_bytes, body=NONE) == 0.3
    assert charged(0.7, wait_ms=wait_ms, min_bytes=min_bytes) == 0.7


def test_a_session_of_more_partitions_than_are_counted_costs_its_time_unless_it_shows_a_wait() -> None:
    assert charged(0.3, partitions=UNCOUNTED) == 0.3
    assert charged(0.8, partitions=UNCOUNTED) == 0.8
    assert charged(0.8, partitions=UNCOUNTED, body=NONE) == pytest.approx(0.301)


def test_no_fetch_costs_more_than_its_time() -> None:
    for wait_ms in (1, 100):
        for body in (NONE, 100, 50_000_000):
            for seconds in (0.0, 0.0004, 0.001, 0.099, 0.1, 0.2):
                assert charged(seconds, wait_ms=wait_ms, partitions=9000, body=body) <= seconds
