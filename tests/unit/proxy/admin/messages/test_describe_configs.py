import pytest

from proxy.admin.messages.describe_configs import (
    DEFAULT_CONFIG,
    TOPIC_CONFIG,
    ConfigEntry,
    merge_configs,
    read_describe_request,
)
from proxy.admin.yielder import Yielder
from proxy.quota.limits.resources import LONG
from tests.support.messages.configs import TOPIC, describe_request
from tests.support.messages.kio_messages import request_frame
from tests.support.messages.mutations import intercepted, to_end

KAFKA = [("a", b"kafka a"), ("b", b"kafka b")]


def merged(name: str, source: int) -> list[tuple[str, bytes]]:
    entry = ConfigEntry(name, "5", source, LONG, "", ())
    return merge_configs(KAFKA, [entry], lambda entry: b"proxy")


def test_configs_of_the_proxy_are_added() -> None:
    assert merged("c", TOPIC_CONFIG) == [*KAFKA, ("c", b"proxy")]


def test_a_value_of_the_proxy_replaces_the_brokers() -> None:
    assert merged("a", TOPIC_CONFIG) == [KAFKA[1], ("a", b"proxy")]


def test_a_default_of_the_proxy_does_not() -> None:
    assert merged("a", DEFAULT_CONFIG) == KAFKA


@pytest.mark.parametrize("names", [None, []])
def test_no_names_are_all_configs(names: list[str] | None) -> None:
    given = intercepted(request_frame(describe_request([((TOPIC, "t"), names)])))
    request = to_end(read_describe_request(given.header, given.frame, Yielder()))
    assert [(resource.key, resource.names) for resource in request.resources] == [((TOPIC, "t"), None)]
