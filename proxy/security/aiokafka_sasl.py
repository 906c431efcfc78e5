"""The parts of SASL that aiokafka implements: SCRAM, and tokens for its own clients.

Access imports this file when a login needs it: importing aiokafka takes as long as a short command does.
"""

from collections.abc import Callable
from typing import Any, Final

from aiokafka.abc import AbstractTokenProvider
from aiokafka.conn import ScramAuthenticator
from aiokafka.errors import AuthenticationFailedError

MAX_ITERATIONS: Final = 100_000
"""The most iterations of SCRAM that a broker may ask for, which take some 50 ms. Kafka itself allows
16,384 at most.
"""


def scram(username: str | None, password: str, mechanism: str) -> Any:
    """The client's side of a SCRAM login."""
    return ScramAuthenticator(
        loop=None,
        sasl_plain_username=username,
        sasl_plain_password=password,
        sasl_mechanism=mechanism,
    )


class TooManyIterations(AuthenticationFailedError, ValueError):  # type: ignore[misc]  # aiokafka has no types
    """A broker asks for more iterations than MAX_ITERATIONS."""


_create_salted_password: Final = ScramAuthenticator.create_salted_password


def _create_bounded(self: Any, salt: bytes, iterations: int) -> None:
    if iterations > MAX_ITERATIONS:
        raise TooManyIterations(f"the broker asks for {iterations} iterations of SCRAM")
    _create_salted_password(self, salt, iterations)


# For the logins of aiokafka's own clients, too. aiokafka has no option for this.
ScramAuthenticator.create_salted_password = _create_bounded


class TokenProvider(AbstractTokenProvider):  # type: ignore[misc]
    """Gives aiokafka's clients the current token."""

    def __init__(self, read: Callable[[], str]) -> None:
        self._read: Final = read

    async def token(self) -> str:
        return self._read()
