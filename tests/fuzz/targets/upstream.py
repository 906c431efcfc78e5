"""Responses to the proxy's own requests: they are read, or rejected with ValueError.

Input: which response, and the frame without its length.
"""

import pkgutil
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from inspect import isclass
from typing import Any, Final

import proxy
from proxy.upstream.responses import read_response
from proxy.wire.api_keys import METADATA
from proxy.wire.apis.metadata_names import MetadataNames
from proxy.wire.errors import ProtocolError
from tests.fuzz.harness import Data, Target
from tests.support.messages.kio_messages import response_frame
from tests.support.messages.random_messages import sample

LENGTH: Final = 4
ASKING: Final = ("proxy.admin.", "proxy.security.", "proxy.upstream.")
SCHEMAS: Final[list[Any]] = []
"""The types of responses that the proxy's modules import."""


def _find() -> None:
    found = set()
    for module in pkgutil.walk_packages(proxy.__path__, "proxy."):
        if not module.name.startswith(ASKING):
            continue
        for value in vars(import_module(module.name)).values():
            if isclass(value) and hasattr(value, "__api_key__") and value.__module__.endswith(".response"):
                found.add(value)
    SCHEMAS.extend(sorted(found, key=lambda schema: (int(schema.__api_key__), int(schema.__version__))))


_find()


def run(data: bytes) -> None:
    given = Data(data)
    schema, frame = SCHEMAS[given.byte() % len(SCHEMAS)], given.rest()
    with suppress(ValueError):
        read_response(schema, frame)
    if int(schema.__api_key__) == METADATA:
        with suppress(ProtocolError):
            names = MetadataNames(frame)
            while not names.read(100):
                pass


def seeds() -> Iterator[bytes]:
    for place, schema in enumerate(SCHEMAS):
        yield bytes([place]) + response_frame(sample(schema))[LENGTH:]


TARGET: Final = Target(run, seeds)
