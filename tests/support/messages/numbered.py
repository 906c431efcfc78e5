"""Messages with a number and a key, and checks that none is lost, repeated or reordered."""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

KEYS: Final = 11


class Got(NamedTuple):
    """A message as a consumer received it."""

    partition: int
    offset: int
    key: bytes
    value: bytes


def key(number: int) -> bytes:
    return b"key-%d" % (number % KEYS)


def value(number: int, size: int = 100) -> bytes:
    """The number, filled with dots up to the size."""
    return (b"%08d" % number).ljust(size, b".")


def number(value: bytes) -> int:
    return int(value[:8])


def check_all_there(got: Sequence[Got], count: int) -> None:
    """Check that messages 0 to count - 1 arrived once each, with their keys, and in order within each
    partition.

    `got` is in the order of arrival. One producer has sent the messages in the order of their numbers.
    """
    numbers = [number(message.value) for message in got]
    missing = sorted(set(range(count)) - set(numbers))
    assert not missing, f"{len(missing)} of {count} messages are lost: {missing[:10]}"
    assert len(numbers) == len(set(numbers)), f"{len(numbers) - len(set(numbers))} messages came twice"
    assert len(numbers) == count, f"{len(numbers) - count} messages that nobody has sent"
    assert all(message.key == key(number(message.value)) for message in got), "a message has another's key"
    check_order(got)


def check_order(got: Iterable[Got]) -> None:
    """Check that offsets and numbers ascend within each partition."""
    last: dict[int, tuple[int, int]] = {}
    for message in got:
        here = (message.offset, number(message.value))
        before = last.get(message.partition, (-1, -1))
        assert here[0] > before[0], f"partition {message.partition}: offset {here[0]} after {before[0]}"
        assert here[1] > before[1], f"partition {message.partition}: message {here[1]} after {before[1]}"
        last[message.partition] = here
