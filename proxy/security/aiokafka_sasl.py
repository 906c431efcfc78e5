"""The parts of SASL that aiokafka implements: SCRAM, and tokens for its own clients.

Access imports this file when a login needs it: importing aiokafka takes as long as a short command does.
"""

from collections.abc import Callable
from typing import Any, Final

from aiokafka.abc import AbstractTokenProvider
from aiokafka.conn import ScramAuthenticator


def scram(username: str | None, password: str, mechanism: str) -> Any:
    """The client's side of a SCRAM login."""
    return ScramAuthenticator(
        loop=None,
        sasl_plain_username=username,
        sasl_plain_password=password,
        sasl_mechanism=mechanism,
    )


class TokenProvider(AbstractTokenProvider):  # type: ignore[misc]
    """Gives aiokafka's clients the current token."""

    def __init__(self, read: Callable[[], str]) -> None:
        self._read: Final = read

    async def token(self) -> str:
        return self._read()
