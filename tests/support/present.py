"""A value that there is: for results that are None if there is none."""

from typing import TypeVar

Value = TypeVar("Value")


def present(value: Value | None) -> Value:
    """The value. It is an AssertionError if there is none."""
    assert value is not None
    return value
