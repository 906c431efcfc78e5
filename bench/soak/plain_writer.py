"""kafka-python's producer as a program: `python -m bench.soak.plain_writer HOST:PORT TOPIC`.

It sends numbered messages until SIGTERM, and prints a line of JSON for each, as kafka-verifiable-producer
does. It has acks=all and retries, and is not idempotent: a retry may store a message twice.

While its connection waits for the first response, kafka-python polls without a pause. With the lowest
priority, it does not take one of two cores from a proxy that starts.
"""

import json
import os
import signal
import sys
import threading
from typing import Final

import kafka as kafka_python
from kafka.errors import KafkaTimeoutError

from bench.soak.writers import FLUSH_SECONDS, ticks
from tests.support.messages.numbered import value

LOWEST_PRIORITY: Final = 19
_LINE: Final = threading.Lock()
"""Callbacks run in kafka-python's thread, or in the one that sends if the message is acknowledged already."""


def say(**event: object) -> None:
    """Print a line."""
    with _LINE:
        print(json.dumps(event), flush=True)


def failed(error: BaseException) -> None:
    """Print why a message has failed."""
    say(name="producer_send_error", exception=type(error).__name__, message=str(error))


def main(bootstrap: str, topic: str) -> None:
    """Send until SIGTERM; then wait for the acknowledgements."""
    over = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: over.set())
    os.nice(LOWEST_PRIORITY)
    producer = kafka_python.KafkaProducer(bootstrap_servers=bootstrap, acks="all", enable_idempotence=False)
    for message in ticks(over):
        sent = producer.send(topic, value(message))
        sent.add_callback(lambda _, message=message: say(name="producer_send_success", value=str(message)))
        sent.add_errback(failed)
    try:
        producer.flush(FLUSH_SECONDS)
    except KafkaTimeoutError as error:
        failed(error)
    producer.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
