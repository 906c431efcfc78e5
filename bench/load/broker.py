"""A fake broker: `python -m bench.load.broker --listen HOST:PORT`.

It responds to Produce v9 and Fetch v12 of the topic "bench" with canned frames, and to ApiVersions and
Metadata as the only broker, which leads the topic. Any other request ends the connection and is named on
standard error.
"""

import argparse
import gc
import socket
from typing import Final, NoReturn

from bench.load.cold import ColdResponses
from bench.load.poller import Poller
from bench.load.session import Session

BUFFER_SIZE: Final = 4 << 20
"""A request has at most this many bytes, with its size field."""
PARTITIONS: Final = 64
"""The partitions of the topic in Metadata responses."""
BACKLOG: Final = 4096


def serve(address: str, join: bool) -> NoReturn:
    """Serve at HOST:PORT until the process is terminated. `join`: see Session."""
    host, _, port = address.rpartition(":")
    listener = socket.create_server((host, int(port)), backlog=BACKLOG)
    cold = ColdResponses(host, int(port), PARTITIONS)
    poller = Poller()
    buffer = bytearray(BUFFER_SIZE)

    def accept(_mask: int) -> None:
        sock, _ = listener.accept()
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        poller.add(sock, Session(sock, poller, cold, buffer, join).on_events)

    poller.add(listener, accept)
    # This process makes no reference cycles, and a collection would show in the latencies.
    gc.disable()
    while True:
        poller.wait(60.0)


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m bench.load.broker", description="A fake Kafka broker.")
    parser.add_argument(
        "--listen",
        default="127.0.0.1:19092",
        metavar="HOST:PORT",
        help="address to serve (default: %(default)s)",
    )
    parser.add_argument(
        "--join", action="store_true", help="send the responses to all requests of one read in one write"
    )
    options = parser.parse_args()
    serve(options.listen, options.join)


if __name__ == "__main__":
    main()
