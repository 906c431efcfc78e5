"""Messages of both APIs, compared with kio at every version."""

import random
import sys
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from kio.schema.errors import ErrorCode
from kio.static.primitive import f64, i8

from proxy.admin.messages.client_quotas import (
    MAX_COMPONENTS,
    Component,
    QuotaAlteration,
    QuotaOp,
    alter_response,
    describe_response,
    read_alterations,
    read_describe,
    read_validate_only,
    write_altered,
    write_described,
)
from proxy.admin.messages.fields import MAX_CHANGES, MAX_MESSAGE_CHARACTERS
from proxy.admin.yielder import SLICE, STEPS, Yielder
from proxy.wire.api_keys import ALTER_CLIENT_QUOTAS, DESCRIBE_CLIENT_QUOTAS
from proxy.wire.edit import count, i32
from proxy.wire.errors import Malformed, Short
from proxy.wire.reader import Reader
from tests.support.loop_turns import counted_turns
from tests.support.messages.kio_messages import encode, read_frame, request_type, response_type, versions

VERSIONS = [0, 1]
FLEXIBLE_FROM = 1
NAMES = ["alice", "", None, "a" * 200, "grün", "<default>"]


def module_of(message: type) -> Any:
    """The module with a message's nested types."""
    return sys.modules[message.__module__]


def entries(seed: int) -> Iterator[tuple[list[tuple[str, str | None]], list[tuple[str, float, bool]]]]:
    """Parts and ops of some entries."""
    choice = random.Random(seed)
    for _ in range(choice.randrange(6)):
        parts = [(kind, choice.choice(NAMES)) for kind in choice.sample(["user", "client-id", "ip"], 2)]
        ops = [
            (f"key-{n}", choice.uniform(-1e18, 1e18), choice.random() < 0.5)
            for n in range(choice.randrange(3))
        ]
        yield parts, ops


def test_kio_has_no_further_versions() -> None:
    assert versions(DESCRIBE_CLIENT_QUOTAS) == VERSIONS
    assert versions(ALTER_CLIENT_QUOTAS) == VERSIONS


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("seed", range(8))
async def test_alter_request(version: int, seed: int) -> None:
    message = request_type(ALTER_CLIENT_QUOTAS, version)
    kio = module_of(message)
    wanted = list(entries(seed))
    body = encode(
        message(
            entries=tuple(
                kio.EntryData(
                    entity=tuple(kio.EntityData(entity_type=kind, entity_name=name) for kind, name in parts),
                    ops=tuple(
                        kio.OpData(key=key, value=f64(value), remove=remove) for key, value, remove in ops
                    ),
                )
                for parts, ops in wanted
            ),
            validate_only=seed % 2 == 0,
        )
    )
    reader = Reader([body])
    flexible = version >= FLEXIBLE_FROM
    entries_read = [QuotaAlteration(tuple(parts), tuple(QuotaOp(*op) for op in ops)) for parts, ops in wanted]
    assert await read_alterations(reader, flexible, Yielder()) == (entries_read, False)
    assert read_validate_only(reader, flexible) is (seed % 2 == 0)
    assert reader.offset == len(body)


@pytest.mark.parametrize("version", VERSIONS)
def test_describe_request(version: int) -> None:
    message = request_type(DESCRIBE_CLIENT_QUOTAS, version)
    kio = module_of(message)
    wanted = [("user", 0, "alice"), ("client-id", 1, None), ("", 2, ""), ("other", 7, None)]
    components = tuple(
        kio.ComponentData(entity_type=kind, match_type=i8(match_type), match=match)
        for kind, match_type, match in wanted
    )
    body = encode(message(components=components, strict=True))
    reader = Reader([body])
    found, strict = read_describe(reader, version >= FLEXIBLE_FROM)
    assert found == [Component(*component) for component in wanted]
    assert strict
    assert reader.offset == len(body)


@pytest.mark.parametrize("version", VERSIONS)
def test_describe_response(version: int) -> None:
    message = response_type(DESCRIBE_CLIENT_QUOTAS, version)
    kio = module_of(message)
    flexible = version >= FLEXIBLE_FROM
    described: list[tuple[list[tuple[str, str | None]], list[tuple[str, float]]]] = [
        ([("user", "alice"), ("client-id", None)], [("a", 1.5), ("b", 2e18)]),
        ([("ip", "::1")], []),
    ]
    written = [write_described(parts, values, flexible) for parts, values in described]
    assert read_frame(message, describe_response(7, flexible, 0, None, written)) == message(
        throttle_time=timedelta(0),
        error_code=ErrorCode.none,
        error_message=None,
        entries=tuple(
            kio.EntryData(
                entity=tuple(kio.EntityData(entity_type=kind, entity_name=name) for kind, name in parts),
                values=tuple(kio.ValueData(key=key, value=f64(value)) for key, value in values),
            )
            for parts, values in described
        ),
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_describe_error(version: int) -> None:
    message = response_type(DESCRIBE_CLIENT_QUOTAS, version)
    frame = describe_response(7, version >= FLEXIBLE_FROM, 42, "no", None)
    assert frame[4:8] == (7).to_bytes(4, "big")
    assert read_frame(message, frame) == message(
        throttle_time=timedelta(0), error_code=ErrorCode.invalid_request, error_message="no", entries=None
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_alter_response(version: int) -> None:
    message = response_type(ALTER_CLIENT_QUOTAS, version)
    kio = module_of(message)
    flexible = version >= FLEXIBLE_FROM
    altered = [([("user", "alice"), ("client-id", None)], 0, None), ([], 42, "empty")]
    written = [write_altered(parts, code, text, flexible) for parts, code, text in altered]
    assert read_frame(message, alter_response(7, flexible, written)) == message(
        throttle_time=timedelta(0),
        entries=tuple(
            kio.EntryData(
                error_code=ErrorCode(code),
                error_message=text,
                entity=tuple(kio.EntityData(entity_type=kind, entity_name=name) for kind, name in parts),
            )
            for parts, code, text in altered
        ),
    )


async def test_null_in_a_field_that_is_not_nullable_is_read() -> None:
    """v1: one entry with one part of null type and name, one op with a null key."""
    body = bytes([2, 2, 0, 0, 0, 2, 0]) + bytes(8) + bytes([0, 0, 0, 1, 0])
    reader = Reader([body])
    entry = QuotaAlteration(((None, None),), (QuotaOp(None, 0.0, False),))
    assert await read_alterations(reader, True, Yielder()) == ([entry], False)
    assert read_validate_only(reader, True)


def test_null_type_is_written_as_empty() -> None:
    message = response_type(ALTER_CLIENT_QUOTAS, 1)
    frame = alter_response(1, True, [write_altered([(None, "a")], 42, "null", True)])
    assert read_frame(message, frame).entries[0].entity[0].entity_type == ""


@pytest.mark.parametrize("flexible", [False, True])
async def test_damaged_body_is_malformed(flexible: bool) -> None:
    choice = random.Random(3)
    for _ in range(2000):
        body = choice.randbytes(choice.randrange(1, 40))
        with suppress(Malformed):
            await read_alterations(Reader([body]), flexible, Yielder())
        with suppress(Malformed):
            read_describe(Reader([body]), flexible)


async def test_count_beyond_the_body_ends_at_once() -> None:
    for number in (b"\x7f\xff\xff\xff", b"\x00\x00\x00\x09"):
        with pytest.raises(Malformed):
            await read_alterations(Reader([number]), False, Yielder())
    with pytest.raises(Short):
        read_describe(Reader([b"\x7f\xff\xff\xff"]), False)


@pytest.mark.parametrize("flexible", [False, True])
def test_a_filter_that_is_too_long_is_not_read_to_its_end(flexible: bool) -> None:
    number = 1_000_000
    component = bytes([2, 97, 2, 0, 0]) if flexible else bytes([0, 1, 97, 2, 255, 255])
    head = count(number, flexible)
    reader = Reader([head + component * number])
    components, _ = read_describe(reader, flexible)
    assert len(components) == MAX_COMPONENTS + 1
    assert reader.offset == len(head) + (MAX_COMPONENTS + 1) * len(component)


OP = bytes([0, 1, 97]) + bytes(9)


@pytest.mark.parametrize(("number", "too_many"), [(MAX_CHANGES, False), (MAX_CHANGES + 1, True)])
async def test_ops_beyond_the_bound_are_skipped(number: int, too_many: bool) -> None:
    """Two entries without parts: one with most of the ops, and one with the last."""
    first, last = i32(0) + i32(number - 1) + OP * (number - 1), i32(0) + i32(1) + OP
    reader = Reader([i32(2) + first + last + b"\1"])
    entries_read, beyond = await read_alterations(reader, False, Yielder())
    assert beyond is too_many
    assert [len(entry.ops) for entry in entries_read] == [number - 1, 0 if too_many else 1]
    assert read_validate_only(reader, False)


async def test_reading_many_ops_gives_way() -> None:
    number = 100 * STEPS
    async with counted_turns() as turns:
        await read_alterations(Reader([i32(1) + i32(0) + i32(number) + OP * number]), False, Yielder())
    assert turns.count >= 100


async def test_skipping_very_many_ops_gives_way() -> None:
    number = MAX_CHANGES + 10 * STEPS * SLICE
    async with counted_turns() as turns:
        await read_alterations(Reader([i32(1) + i32(0) + i32(number) + OP * number]), False, Yielder())
    assert turns.count >= 10


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(i32(MAX_CHANGES + 1) + bytes(8) * (MAX_CHANGES + 1), id="entries"),
        pytest.param(i32(1) + i32(MAX_CHANGES + 1) + b"\xff" * 4 * (MAX_CHANGES + 1) + bytes(4), id="parts"),
    ],
)
async def test_more_entities_than_a_request_can_change_are_malformed(body: bytes) -> None:
    with pytest.raises(Malformed, match=str(MAX_CHANGES)):
        await read_alterations(Reader([body]), False, Yielder())


@pytest.mark.parametrize("version", VERSIONS)
def test_long_error_messages_are_cut(version: int) -> None:
    message = response_type(DESCRIBE_CLIENT_QUOTAS, version)
    flexible = version >= FLEXIBLE_FROM
    response = read_frame(message, describe_response(7, flexible, 42, "x" * 100_000, None))
    assert response.error_message == "x" * MAX_MESSAGE_CHARACTERS
    altered = alter_response(7, flexible, [write_altered([], 42, "x" * 100_000, flexible)])
    assert read_frame(response_type(ALTER_CLIENT_QUOTAS, version), altered).entries[0].error_code == 42
