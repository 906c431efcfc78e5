"""aiokafka's clients, as the proxy uses them: none of their metadata requests creates a topic.

A broker with auto.create.topics.enable, which is Kafka's default, creates each topic that such a request
names. If a topic of the proxy were deleted, its own clients would create it again at once, with the broker's
default configs, which do not fit: the store's topic has to be compacted, and the shares topic needs the
broker's timestamps. prepare_topic() creates them as they have to be.
"""

from typing import Any, Final

import aiokafka.client
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.protocol.metadata import MetadataRequest

__all__: Final = ("AIOKafkaConsumer", "AIOKafkaProducer")


class _MetadataRequest(MetadataRequest):  # type: ignore[misc]  # aiokafka has no types
    def __init__(self, topics: Any = None) -> None:
        super().__init__(topics, allow_auto_topic_creation=False)


# aiokafka has no option for this.
aiokafka.client.MetadataRequest = _MetadataRequest
