"""Forgetting idle state to the end, which takes several steps."""

from typing import Protocol


class Forgets(Protocol):
    def forget_idle(self, now: float) -> bool: ...


def forget_idle(what: Forgets, now: float) -> int:
    """Have everything forgotten; return the number of steps."""
    steps = 1
    while what.forget_idle(now):
        steps += 1
    return steps
