"""BrokerErrors: counts the error codes in the responses of a broker."""

from typing import Final, final

from proxy.relay.counters.traffic import Traffic
from proxy.wire.views import ResponseView


@final
class BrokerErrors:
    """The counter of one broker, for all connections to it. It counts errors in responses that the relay
    reads, and none of the proxy's own.
    """

    __slots__ = ("_node_id", "_traffic")

    def __init__(self, traffic: Traffic, node_id: int) -> None:
        self._traffic: Final = traffic
        self._node_id: Final = node_id

    def take(self, api_key: int, view: ResponseView) -> None:
        """Count the errors of a response, as far as it has been read; later calls count what has come
        since.
        """
        errors = view.errors
        if errors is not None:
            view.errors = None
            for error in errors:
                self._traffic.count_broker_error(self._node_id, api_key, error.error_code, error.times)

    def count(self, api_key: int, error_code: int) -> None:
        """Count an error of a response without a view; 0 is none."""
        if error_code != 0:
            self._traffic.count_broker_error(self._node_id, api_key, error_code)
