"""Produce requests with topic ids, and a cluster whose names the proxy learns when the test says so."""

from collections.abc import Iterable, Mapping
from typing import Any, Final
from uuid import UUID

from kio.schema.errors import ErrorCode

from proxy.quota.limits.config_keys import PRODUCER_BYTE_RATE
from proxy.quota.limits.resources import Resources
from proxy.wire.topic_names import TopicNames
from tests.support.messages.kio_messages import read_frame, response_type
from tests.support.messages.produce import produce_request, produce_response
from tests.support.messages.requests import TOPIC_IDS_FROM
from tests.support.stories.playbook import Playbook, new_relay

RATE: Final = PRODUCER_BYTE_RATE.name
HOT: Final = "hot"
COLD: Final = "cold"
IDS: Final = {HOT: UUID(int=1), COLD: UUID(int=2), "made up": UUID(int=3), "secret": UUID(int=4)}
TOPICS: Final = {topic_id: name for name, topic_id in IDS.items()}
LIMITED: Final = Resources({HOT: {RATE: "1000"}})
UNKNOWN: Final = ErrorCode.unknown_topic_id


class Names(TopicNames):
    """Knows HOT and COLD from when the test says so; the cluster may be asked."""

    def __init__(self, *known: str) -> None:
        super().__init__()
        self.known = {IDS[name].bytes: name for name in known}
        self.may_ask = True
        self.secret_asked = True
        self.sent = 3
        self.answered = 3

    @property
    def asks(self) -> bool:
        return self.may_ask

    @property
    def requests(self) -> int:
        return self.sent

    @property
    def responses(self) -> int:
        return self.answered

    def hides(self, topic_id: bytes) -> bool:
        return self.secret_asked and topic_id == IDS["secret"].bytes

    def look_up(self, topic_id: bytes) -> str:
        return self.known.get(topic_id, "")

    def learn(self, *known: str) -> None:
        """The cluster has responded: it has these topics."""
        self.known.update({IDS[name].bytes: name for name in known})
        self.sent += 1
        self.answered = self.sent


def told(names: Names, resources: Resources = LIMITED, **more: Any) -> Playbook:
    """A connection whose relay has these names."""
    return Playbook(new_relay(resources=resources, topic_names=names, **more))


def request(number: int, sizes: Mapping[Any, Iterable[int]], acks: int = -1) -> bytes:
    """A Produce request by topic ids; `sizes` as in produce_request()."""
    return produce_request(number, sizes, IDS, version=TOPIC_IDS_FROM, acks=acks)


def response(number: int, partitions: Mapping[str, Iterable[int]]) -> bytes:
    """The response of the broker."""
    return produce_response(number, partitions, IDS, version=TOPIC_IDS_FROM)


def read(play: Playbook) -> Any:
    """What the client reads."""
    return read_frame(response_type(0, TOPIC_IDS_FROM), b"".join(play.relay.take_to_client()))
