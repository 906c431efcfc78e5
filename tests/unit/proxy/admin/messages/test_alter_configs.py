from typing import Any

import pytest

from proxy.admin.messages.alter_configs import (
    AlterRequest,
    read_alter_request,
    write_alter_response,
    write_result,
)
from proxy.admin.messages.fields import MAX_CHANGES
from proxy.admin.yielder import STEPS, Yielder
from proxy.wire.errors import Malformed
from tests.support.loop_turns import counted_turns
from tests.support.messages.configs import DELETE, SET, TOPIC, alter_request, incremental_request, results
from tests.support.messages.kio_messages import read_frame, request_frame, response_type
from tests.support.messages.mutations import intercepted, to_end

T, U = (TOPIC, "t"), (TOPIC, "u")


def read(message: Any) -> AlterRequest:
    given = intercepted(request_frame(message))
    request = to_end(read_alter_request(given.header, given.frame, Yielder()))
    assert request is not None
    return request


@pytest.mark.parametrize("version", [0, 1])
def test_incremental_request_has_operations(version: int) -> None:
    request = read(incremental_request([(T, [("a", SET, "5"), ("b", DELETE, None)])], version))
    [resource] = request.resources
    assert [(op.name, op.operation, op.value) for op in resource.ops] == [
        ("a", SET, "5"),
        ("b", DELETE, None),
    ]
    assert not request.replaces


@pytest.mark.parametrize("version", [0, 1, 2])
def test_alter_configs_sets_all(version: int) -> None:
    request = read(alter_request([(T, {"a": "5"})], version, validate_only=True))
    assert [(op.name, op.operation) for op in request.resources[0].ops] == [("a", SET)]
    assert request.replaces
    assert request.validate_only


def test_results_have_the_order_of_the_request() -> None:
    request = read(incremental_request([(T, []), (U, []), (T, [])]))
    mixed = [
        write_result(request, U, 0, None),
        write_result(request, T, 40, "x"),
        write_result(request, T, 0, None),
    ]
    response = read_frame(response_type(44, 1), to_end(write_alter_response(request, mixed, 0, Yielder())))
    assert [(resource, int(code)) for resource, code, _ in results(response)] == [(T, 40), (U, 0), (T, 0)]


@pytest.mark.parametrize("beyond", [0, 1])
@pytest.mark.parametrize("what", ["resources", "configs"])
def test_a_request_has_no_more_than_kafka_changes_at_once(what: str, beyond: int) -> None:
    number = MAX_CHANGES + beyond
    if what == "resources":
        message = incremental_request([(T, [])] * number)
    else:
        message = incremental_request([(T, [("a", SET, "5")] * (number - 1)), (U, [("a", SET, "5")])])
    if beyond:
        with pytest.raises(Malformed, match=f"{number} {what}"):
            read(message)
    else:
        read(message)


async def test_resources_without_configs_give_way() -> None:
    given = intercepted(request_frame(incremental_request([(T, [])] * (4 * STEPS))))
    async with counted_turns() as turns:
        await read_alter_request(given.header, given.frame, Yielder())
    assert turns.count >= 3
