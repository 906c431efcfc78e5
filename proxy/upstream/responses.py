"""Reads responses of brokers with kio, after a check of the lengths that they announce.

kio allocates memory for as many elements as an array announces, and ends the process if there is not as much.
It also rejects tagged fields that it does not know, which a newer broker may send: they are removed. It reads
None from arrays that may not be null: they are rejected.
"""

from dataclasses import fields, is_dataclass
from functools import cache
from types import NoneType
from typing import Any, Final, TypeVar, get_args, get_origin

from kio.serial import entity_reader
from kio.serial.errors import SerialError
from kio.static.protocol import ResponsePayload

from proxy.wire.edit import Edit, apply
from proxy.wire.errors import ProtocolError
from proxy.wire.keyed.shape import ARRAY, BYTES, FIXED, NULLABLE, STRING, STRUCT, Shape, check_shape
from proxy.wire.reader import Reader

Response = TypeVar("Response", bound=ResponsePayload)
_SIZES: Final = {
    **{"bool": 1, "int8": 1, "int16": 2, "uint16": 2, "error_code": 2, "int32": 4, "timedelta_i32": 4},
    **{"int64": 8, "float64": 8, "datetime_i64": 8, "timedelta_i64": 8, "uuid": 16},
}
_LENGTHS: Final = {"string": STRING, "bytes": BYTES, "records": BYTES}


def read_response(schema: type[Response], frame: bytes) -> tuple[int, Response]:
    """The correlation id and the body of a frame, given without its length. Raises ValueError."""
    header_schema: Any = schema.__header_schema__
    try:
        frame = checked(frame, header_schema, schema)
        header, at = entity_reader(header_schema)(frame, 0)
        response, _ = entity_reader(schema)(frame, at)
    except (SerialError, ProtocolError, OverflowError) as error:
        raise ValueError(str(error)) from error
    return header.correlation_id, response


def checked(frame: bytes, *entities: Any, at: int = 0) -> bytes:
    """The frame, which has these parts of messages from `at` on, without unknown tagged fields.

    Raises ProtocolError.
    """
    reader = Reader([frame], at)
    edits: list[Edit] = []
    for entity in entities:
        check_shape(reader, shape_of(entity), len(frame), edits)
    return b"".join(apply([frame], edits)) if edits else frame


@cache
def shape_of(entity: Any) -> Shape:
    """The shape of a message, or of a part of it, that kio has as a dataclass."""
    flexible: bool = entity.__flexible__
    untagged, tagged = [], {}
    for field in fields(entity):
        shape = _field(field.type, field.metadata.get("kafka_type", ""), flexible)
        tag = field.metadata.get("tag")
        if tag is None:
            untagged.append(shape)
        else:
            tagged[tag] = shape
    return Shape(STRUCT, 0, untagged, tagged, flexible)


def _struct(entity: Any) -> Shape:
    return shape_of(entity)


def _field(hint: Any, kafka_type: str, flexible: bool, nullable: bool = False) -> Shape:
    """Return the shape of a field, by its type in kio's dataclass and its type in Kafka."""
    if get_origin(hint) is tuple:
        element = _field(get_args(hint)[0], kafka_type, flexible)
        return Shape(ARRAY, 0, [element], {}, flexible, nullable)
    if NoneType in get_args(hint):
        [hint] = [option for option in get_args(hint) if option is not NoneType]
        if get_origin(hint) is tuple:
            return _field(hint, kafka_type, flexible, nullable=True)
        if is_dataclass(hint):
            return Shape(NULLABLE, 0, [_struct(hint)], {}, flexible)
    if is_dataclass(hint):
        return _struct(hint)
    if kafka_type in _LENGTHS:
        return Shape(_LENGTHS[kafka_type], 0, [], {}, flexible)
    return Shape(FIXED, _SIZES[kafka_type], [], {}, flexible)
