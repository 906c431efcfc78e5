"""Pauses: a socket is read from while there is no reason not to."""

import asyncio
from typing import cast

from proxy.server.connection.pauses import BROKER_FULL, CONNECTING, MUTED, Pauses


class Transport:
    def __init__(self, closing: bool = False) -> None:
        self.told: list[str] = []
        self._closing = closing

    def is_closing(self) -> bool:
        return self._closing

    def pause_reading(self) -> None:
        self.told.append("pause")

    def resume_reading(self) -> None:
        self.told.append("resume")


def change(pauses: Pauses, transport: Transport | None, why: int, on: bool) -> bool:
    return pauses.change(cast("asyncio.Transport | None", transport), why, on)


def test_it_is_read_from_when_the_last_reason_is_gone() -> None:
    pauses, transport = Pauses(), Transport()
    assert not change(pauses, transport, MUTED, True)
    assert not change(pauses, transport, BROKER_FULL, True)
    assert not change(pauses, transport, MUTED, False)
    assert transport.told == ["pause"]
    assert change(pauses, transport, BROKER_FULL, False)
    assert transport.told == ["pause", "resume"]


def test_a_reason_twice_is_one() -> None:
    pauses, transport = Pauses(), Transport()
    change(pauses, transport, MUTED, True)
    change(pauses, transport, MUTED, True)
    assert change(pauses, transport, MUTED, False)
    assert not change(pauses, transport, MUTED, False)
    assert transport.told == ["pause", "resume"]


def test_what_it_has() -> None:
    pauses = Pauses()
    change(pauses, None, CONNECTING, True)
    assert pauses.has(CONNECTING)
    assert pauses.has(CONNECTING | BROKER_FULL)
    assert not pauses.has(MUTED)
    pauses.clear()
    assert not pauses.has(CONNECTING)


def test_without_a_socket_or_with_one_that_closes_it_is_only_noted() -> None:
    for transport in (None, Transport(closing=True)):
        pauses = Pauses()
        assert not change(pauses, transport, MUTED, True)
        assert pauses.has(MUTED)
        assert not change(pauses, transport, MUTED, False)
        assert transport is None or transport.told == []
