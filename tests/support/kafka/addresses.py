"""Brokers' addresses, in messages and in plain bytes."""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from proxy.demo.embedded_kafka import EmbeddedKafka
from proxy.demo.kafka.broker_properties import LISTENERS
from tests.support.kafka.raw_client import HOST


def addresses(value: Any) -> set[tuple[int, str, int]]:
    """Every (node id, host, port) in a message."""
    return set(_addresses(value))


def _addresses(value: Any) -> Iterator[tuple[int, str, int]]:
    if isinstance(value, tuple):
        for element in value:
            yield from _addresses(element)
    elif is_dataclass(value):
        inside = {field.name: getattr(value, field.name) for field in fields(value)}
        if "host" in inside:
            yield inside.get("node_id", inside.get("broker_id", -1)), inside["host"], inside["port"]
        for element in inside.values():
            yield from _addresses(element)


def leaked(kafka: EmbeddedKafka, data: bytes) -> list[str]:
    """The brokers' own addresses that occur in what clients were sent, as Kafka encodes them or as text."""
    found = []
    for node_id in kafka.node_ids:
        for listener in LISTENERS:
            port = kafka.port(node_id, listener)
            # DescribeQuorum has ports of 16 bits, other responses of 32.
            binary = [HOST.encode() + port.to_bytes(size, "big") for size in (2, 4)]
            if any(known in data for known in (*binary, f"{HOST}:{port}".encode())):
                found.append(f"broker {node_id}'s {listener} at {HOST}:{port}")
    return found
