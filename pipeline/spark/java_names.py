"""Remembers what names mean in Java.

PySpark looks up the class and the method of a function in Java at each call, so that to make a column takes
three calls. Java searches every jar for some of these names. In a short run, these calls would be a sixth of
the CPU time.
"""

from typing import Any, Final

from py4j import protocol  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

_LOOKUPS: Final = tuple(
    protocol.REFLECTION_COMMAND_NAME + kind
    for kind in (protocol.REFL_GET_UNKNOWN_SUB_COMMAND_NAME, protocol.REFL_GET_MEMBER_SUB_COMMAND_NAME)
)
"""How py4j asks what a name is, and what a class's static member is."""
_CONSTANT: Final = tuple(
    protocol.SUCCESS + kind for kind in (protocol.PACKAGE_TYPE, protocol.CLASS_TYPE, protocol.METHOD_TYPE)
)
"""How the responses begin that do not change. The value of a static field may change."""


def remember_names(spark: SparkSession) -> None:
    """Look up each name once in the session's Java process."""
    gateway: Any = spark.sparkContext._gateway
    client = gateway._gateway_client
    if not isinstance(client.send_command, RememberedNames):
        client.send_command = RememberedNames(client.send_command)


class RememberedNames:
    """py4j's `send_command`, with the constant responses to earlier commands."""

    def __init__(self, send_command: Any) -> None:
        self._send: Final = send_command
        self._known: Final[dict[str, str]] = {}

    def __call__(self, command: str, *others: Any, **options: Any) -> Any:
        if not command.startswith(_LOOKUPS):
            return self._send(command, *others, **options)
        response = self._known.get(command)
        if response is None:
            response = self._send(command, *others, **options)
            if response.startswith(_CONSTANT):
                self._known[command] = response
        return response
