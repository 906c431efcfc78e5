"""Random messages of any type of kio, made from the fields of its dataclass."""

import datetime
import types
import uuid
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, Final, Union, cast, get_args, get_origin, get_type_hints

from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from tests.support.messages.kio_messages import BROKER_HOST

# BROKER_HOST cannot be made of these letters, so where a frame has it, it is a broker's host.
TEXT: Final = st.text(alphabet="xyz-Äß漢", max_size=8)

_BY_NAME: Final[dict[str, st.SearchStrategy[Any]]] = {
    "acks": st.sampled_from([-1, 0, 1]),
    "api_key": st.sampled_from([-1, 0, 1, 2, 3, 10, 18, 36, 60, 78, 79, 127, 128, 200, 32767]),
    "broker_id": st.integers(-1, 5),
    "endpoint_type": st.sampled_from([1, 1, 2, -128]),
    "host": st.sampled_from(["", *[f"{BROKER_HOST}.{'x' * size}" for size in (0, 1, 90, 130)]]),
    "max_version": st.integers(0, 20),
    "min_version": st.integers(0, 5),
    "node_id": st.integers(-1, 5),
    "port": st.integers(0, 65535),
}
_BY_TYPE: Final[dict[str, st.SearchStrategy[Any]]] = {
    "bool": st.booleans(),
    "bytes": st.binary(max_size=40),
    "datetime_i64": st.integers(0, 2**32).map(
        lambda seconds: datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    ),
    "error_code": st.sampled_from(list(ErrorCode)),
    "int8": st.integers(-(2**7), 2**7 - 1),
    "int16": st.integers(-(2**15), 2**15 - 1),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "records": st.binary(max_size=300),
    "string": TEXT,
    "timedelta_i32": st.integers(-(2**31), 2**31 - 1).map(
        lambda milliseconds: datetime.timedelta(milliseconds=milliseconds)
    ),
    "uuid": st.uuids(),
}


@cache
def messages(entity: Any) -> st.SearchStrategy[Any]:
    """Messages of one kio type; every host in them begins with BROKER_HOST."""
    hints = get_type_hints(entity)
    made: dict[str, st.SearchStrategy[Any]] = {
        field.name: _field(field.name, field.metadata.get("kafka_type", ""), hints[field.name])
        for field in fields(entity)
    }
    build: Callable[..., Any] = entity
    return st.builds(build, **made)


def _field(name: str, kafka_type: str, hint: Any) -> st.SearchStrategy[Any]:
    if get_origin(hint) in (Union, types.UnionType):
        inner = [arg for arg in get_args(hint) if arg is not type(None)]
        return st.none() | _field(name, kafka_type, inner[0])
    if get_origin(hint) is tuple:
        return st.lists(_field(name, kafka_type, get_args(hint)[0]), max_size=3).map(tuple)
    if is_dataclass(hint):
        return messages(cast("Any", hint))
    return _BY_NAME[name] if name in _BY_NAME else _BY_TYPE[kafka_type]


_SAMPLES: Final[dict[str, Any]] = {
    "bool": True,
    "bytes": b"bytes",
    "datetime_i64": datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC),
    "error_code": ErrorCode.none,
    "float64": 1.5,
    "int8": 1,
    "int16": 2,
    "int32": 3,
    "int64": 4,
    "records": b"records",
    "string": "text",
    "timedelta_i32": datetime.timedelta(0),
    "timedelta_i64": datetime.timedelta(0),
    "uint16": 6,
    "uuid": uuid.UUID(int=5),
}


def sample(entity: Any) -> Any:
    """A message of a kio type, always the same one, with two elements in every array and every field set."""
    hints = get_type_hints(entity)
    made = {
        field.name: _sample(field.name, field.metadata.get("kafka_type", ""), hints[field.name])
        for field in fields(entity)
    }
    return entity(**made)


def _sample(name: str, kafka_type: str, hint: Any) -> Any:
    if get_origin(hint) in (Union, types.UnionType):
        hint = next(arg for arg in get_args(hint) if arg is not type(None))
    if get_origin(hint) is tuple:
        return (_sample(name, kafka_type, get_args(hint)[0]),) * 2
    if is_dataclass(hint):
        return sample(hint)
    return BROKER_HOST if name == "host" else _SAMPLES[kafka_type]
