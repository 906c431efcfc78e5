"""DescribeQuorum: v0-2. Read for the controllers' addresses, which the response then does not have.

No throttle_time_ms; flexible from v0; v1 times of the last fetch and of the last time in sync; v2
error_message, replica_directory_id, and nodes with the addresses of the voters' controller listeners.
Controllers are not reached through the proxy, so it has no address to put in place of theirs.
"""

from typing import Final, final

from proxy.wire.addresses import Addresses
from proxy.wire.api_keys import DESCRIBE_QUORUM
from proxy.wire.apis.api import Api
from proxy.wire.edit import Edit, count
from proxy.wire.reader import Reader
from proxy.wire.views import RequestView, ResponseView

_NODES_FROM: Final = 2


@final
class DescribeQuorum(Api):
    key = DESCRIBE_QUORUM
    oldest = 0
    newest = 2
    flexible_from = 0

    def read_response(
        self, reader: Reader, request: RequestView, view: ResponseView, addresses: Addresses
    ) -> None:
        error_code = reader.i16()
        if view.api_version >= _NODES_FROM:
            reader.skip_string(True)  # error_message
            _skip_topics(reader)
            nodes_at = reader.offset
            _skip_nodes(reader)
            view.edits.append(Edit(nodes_at, reader.offset, count(0, True)))
        view.note_error(error_code)
        view.cursor.done = True


def _skip_topics(reader: Reader) -> None:
    topics = reader.count(True)
    while topics > 0:
        reader.skip_string(True)  # topic_name
        partitions = reader.count(True)
        while partitions > 0:
            reader.take(6)  # partition_index, error_code
            reader.skip_string(True)  # error_message
            reader.take(16)  # leader_id, leader_epoch, high_watermark
            _skip_replicas(reader)  # current_voters
            _skip_replicas(reader)  # observers
            reader.skip_tags()
            partitions -= 1
        reader.skip_tags()
        topics -= 1


def _skip_replicas(reader: Reader) -> None:
    left = reader.count(True)
    while left > 0:
        # replica_id, replica_directory_id, log_end_offset, last_fetch_timestamp, last_caught_up_timestamp
        reader.take(44)
        reader.skip_tags()
        left -= 1


def _skip_nodes(reader: Reader) -> None:
    nodes = reader.count(True)
    while nodes > 0:
        reader.take(4)  # node_id
        listeners = reader.count(True)
        while listeners > 0:
            reader.skip_string(True)  # name
            reader.skip_string(True)  # host
            reader.take(2)  # port
            reader.skip_tags()
            listeners -= 1
        reader.skip_tags()
        nodes -= 1
