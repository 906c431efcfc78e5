"""Responses to the proxy's own requests, of brokers that send what they should not."""

from dataclasses import replace

import pytest
from kio.schema.alter_client_quotas.v0.response import AlterClientQuotasResponse
from kio.schema.describe_client_quotas.v0.response import DescribeClientQuotasResponse
from kio.schema.metadata.v12.response import MetadataResponse
from kio.schema.types import BrokerId

from proxy.upstream.responses import read_response, shape_of
from proxy.wire.edit import i32
from proxy.wire.keyed.shape import check_shape
from proxy.wire.reader import Reader
from tests.support.messages.kio_messages import encode, response_frame, response_type, versions
from tests.support.messages.random_messages import sample

REPLICAS = (BrokerId(0x11111111), BrokerId(0x22222222))
MESSAGE = sample(MetadataResponse)
TOPIC = MESSAGE.topics[0]
MESSAGE = replace(
    MESSAGE, topics=(replace(TOPIC, partitions=(replace(TOPIC.partitions[0], replica_nodes=REPLICAS),)),)
)
METADATA = response_frame(MESSAGE, 0)[4:]


def test_a_response() -> None:
    assert read_response(MetadataResponse, METADATA) == (0, MESSAGE)


@pytest.mark.parametrize(
    ("count", "says"),
    [(b"\xff\xff\xff\xff\x7f", "over 31 bits"), (b"\xff\xff\xff\xff\x07", "an array of 2147483646 elements")],
)
def test_an_array_that_announces_billions_of_elements_is_an_error(count: bytes, says: str) -> None:
    """kio would allocate memory for them, and end the process if there is not as much."""
    replicas = b"".join(map(i32, REPLICAS))
    assert b"\x03" + replicas in METADATA
    with pytest.raises(ValueError, match=says):
        read_response(MetadataResponse, METADATA.replace(b"\x03" + replicas, count + replicas))


def test_a_null_array_that_may_not_be_null_is_an_error() -> None:
    """kio reads None from it."""
    nullable = i32(0) + i32(0) + b"\0\0" + b"\xff\xff" + i32(-1)
    assert read_response(DescribeClientQuotasResponse, nullable)[1].entries is None
    with pytest.raises(ValueError, match=r"offset 12\b"):
        read_response(AlterClientQuotasResponse, i32(0) + i32(0) + i32(-1))


def test_tagged_fields_of_a_newer_broker_are_ignored() -> None:
    """kio rejects them."""
    data = METADATA[:-1] + b"\1\x2a\4more"
    assert read_response(MetadataResponse, data) == (0, MESSAGE)


@pytest.mark.parametrize("size", range(0, len(METADATA), 7))
def test_a_response_that_ends_early(size: int) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_response(MetadataResponse, METADATA[:size])


@pytest.mark.parametrize("api_key", [0, 1, 3, 10, 18, 19, 29, 32, 48, 49, 60, 75])
def test_the_shapes_of_messages(api_key: int) -> None:
    for version in versions(api_key):
        schema = response_type(api_key, version)
        data = encode(sample(schema))
        reader = Reader([data])
        check_shape(reader, shape_of(schema), len(data), [])
        assert reader.offset == len(data)
