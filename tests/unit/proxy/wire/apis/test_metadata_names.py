"""Names of topics in Metadata responses: compared with kio."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DataObject
from kio.schema.metadata.v12.response import MetadataResponse

from proxy.wire.api_keys import METADATA
from proxy.wire.apis.metadata_names import METADATA_VERSION, MetadataNames
from proxy.wire.errors import Short
from tests.support.messages.kio_messages import response_frame, response_type
from tests.support.messages.random_messages import messages

SCHEMA = response_type(METADATA, METADATA_VERSION)
FEW = settings(max_examples=50, suppress_health_check=[HealthCheck.too_slow])


def wanted(response: MetadataResponse) -> dict[bytes, str]:
    return {
        topic.topic_id.bytes: topic.name
        for topic in response.topics
        if topic.error_code == 0 and topic.name and topic.topic_id is not None
    }


@FEW
@given(response=messages(SCHEMA), most=st.integers(1, 5))
def test_the_names_are_those_of_topics_without_an_error(response: MetadataResponse, most: int) -> None:
    read = MetadataNames(response_frame(response, 7)[4:])
    assert read.correlation_id == 7
    steps = 1
    while not read.read(most):
        steps += 1
    assert {topic_id: name for topic_id, name in read.names.items() if any(topic_id)} == wanted(response)
    things = sum(2 + len(topic.partitions) for topic in response.topics)
    assert steps == things // most + 1


@FEW
@given(response=messages(SCHEMA), data=st.data())
def test_a_response_that_ends_early_is_short(response: MetadataResponse, data: DataObject) -> None:
    frame = response_frame(response, 7)[4:]
    # The tags at the end are not read.
    cut = frame[: data.draw(st.integers(0, len(frame) - 2))]
    with pytest.raises(Short):
        MetadataNames(cut).read(1 << 30)
