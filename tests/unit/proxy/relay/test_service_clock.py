"""ServiceClock: the later of the relay's `now` and the event that was noted."""

from proxy.relay.service_clock import ServiceClock


def test_without_an_event_it_is_now() -> None:
    assert ServiceClock().at(5.0) == 5.0


def test_an_event_is_a_little_after_now() -> None:
    clock = ServiceClock()
    clock.event = 5.0003
    assert clock.at(5.0) == 5.0003


def test_an_event_of_an_earlier_call_does_not_count() -> None:
    clock = ServiceClock()
    clock.event = 5.0003
    assert clock.at(5.001) == 5.001
