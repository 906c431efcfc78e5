"""DrainPolls: a client is read from for about a second more, or until it is quiet."""

from proxy.server.connection.drain import (
    ACTIVE_SECONDS,
    DRAIN_CALLS,
    QUIET_SECONDS,
    REQUEST_CALLS,
    DrainPolls,
)


def test_one_that_goes_on_sending_is_read_from_for_so_many_calls() -> None:
    drain = DrainPolls()
    for _ in range(DRAIN_CALLS):
        drain.called(False)
        assert not drain.read_enough
    drain.called(False)
    assert drain.read_enough


def test_calls_while_the_broker_takes_no_more_do_not_count() -> None:
    drain = DrainPolls()
    for _ in range(2 * DRAIN_CALLS):
        drain.called(True)
    assert not drain.read_enough


def test_silence_is_quiet_only_where_the_client_could_be_read() -> None:
    drain = DrainPolls()
    drain.called(False)
    assert drain.quiet(QUIET_SECONDS)
    assert not drain.quiet(QUIET_SECONDS / 2)
    drain.called(True)
    assert not drain.quiet(10 * QUIET_SECONDS)


def test_the_next_request_of_an_active_client_is_awaited_for_so_many_calls() -> None:
    drain = DrainPolls()
    awaited = [drain.awaits_request(0.0) for _ in range(REQUEST_CALLS + 1)]
    assert awaited == [True] * REQUEST_CALLS + [False]
    assert not DrainPolls().awaits_request(ACTIVE_SECONDS)
