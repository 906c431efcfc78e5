"""Real clients that connect with TLS and a login; each sends some messages and reads them back."""

import asyncio
import contextlib
import ssl
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import confluent_kafka
import kafka as kafka_python
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.abc import AbstractTokenProvider
from kafka.net.sasl.oauth import AbstractTokenProvider as OauthTokenProvider

from proxy.demo.embedded_kafka import EmbeddedKafka
from tests.support.kafka.clients import kafka_python_consumer, new_group
from tests.support.kafka.secured_kafka import token
from tests.support.process.certificates import Signed
from tests.support.waiting import wait_until

COUNT: Final = 5
SECONDS: Final = 60.0
OAUTHBEARER: Final = "OAUTHBEARER"
_LOGIN: Final = "org.apache.kafka.common.security."


class ClosingContext(ssl.SSLContext):
    """Closes its sockets. When kafka-python is closed during a TLS handshake, it leaves the socket open."""

    def __init__(self, protocol: int) -> None:
        self._sockets: Final[list[ssl.SSLSocket]] = []

    def wrap_socket(self, *args: Any, **settings: Any) -> ssl.SSLSocket:
        wrapped = super().wrap_socket(*args, **settings)
        self._sockets.append(wrapped)
        return wrapped

    def close(self) -> None:
        for each in self._sockets:
            each.close()


@dataclass(frozen=True)
class Way:
    """The client's TLS and login: TLS if there is a `ca`, and a certificate, a password, or a token."""

    user: str
    ca: str | None = None
    mechanism: str | None = None
    password: str = ""
    certificate: Signed | None = None

    @property
    def protocol(self) -> str:
        tls = "PLAINTEXT" if self.ca is None else "SSL"
        return tls if self.mechanism is None else f"SASL_{tls}"

    def context(self) -> ClosingContext | None:
        if self.ca is None:
            return None
        context = ClosingContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(self.ca)
        if self.certificate is not None:
            context.load_cert_chain(self.certificate.certificate, self.certificate.key)
        return context

    def librdkafka(self) -> dict[str, Any]:
        config: dict[str, Any] = {"security.protocol": self.protocol}
        if self.ca is not None:
            config["ssl.ca.location"] = self.ca
        if self.certificate is not None:
            config["ssl.certificate.location"] = self.certificate.certificate
            config["ssl.key.location"] = self.certificate.key
        if self.mechanism is not None:
            config["sasl.mechanism"] = self.mechanism
        if self.mechanism == OAUTHBEARER:
            config["enable.sasl.oauthbearer.unsecure.jwt"] = True
            config["sasl.oauthbearer.config"] = f"principal={self.user}"
        elif self.mechanism is not None:
            config["sasl.username"] = self.user
            config["sasl.password"] = self.password
        return config

    def aiokafka(self) -> dict[str, Any]:
        config: dict[str, Any] = {"security_protocol": self.protocol, "ssl_context": self.context()}
        if self.mechanism is not None:
            config["sasl_mechanism"] = self.mechanism
        if self.mechanism == OAUTHBEARER:
            config["sasl_oauth_token_provider"] = _Token(self.user)
        elif self.mechanism is not None:
            config["sasl_plain_username"] = self.user
            config["sasl_plain_password"] = self.password
        return config

    def kafka_python(self) -> dict[str, Any]:
        config = self.aiokafka()
        if self.mechanism == OAUTHBEARER:
            config["sasl_oauth_token_provider"] = _BlockingToken(self.user)
        return config

    def java(self) -> dict[str, str]:
        config = {"security.protocol": self.protocol}
        if self.ca is not None:
            config.update({"ssl.truststore.type": "PEM", "ssl.truststore.location": self.ca})
        if self.certificate is not None:
            config.update({"ssl.keystore.type": "PEM", "ssl.keystore.location": self.certificate.both})
        if self.mechanism is None:
            return config
        config["sasl.mechanism"] = self.mechanism
        if self.mechanism == OAUTHBEARER:
            module = "oauthbearer.OAuthBearerLoginModule"
            given = f'unsecuredLoginStringClaim_sub="{self.user}"'
        else:
            module = "plain.PlainLoginModule" if self.mechanism == "PLAIN" else "scram.ScramLoginModule"
            given = f'username="{self.user}" password="{self.password}"'
        config["sasl.jaas.config"] = f"{_LOGIN}{module} required {given};"
        return config


class _Token(AbstractTokenProvider):
    def __init__(self, user: str) -> None:
        self._user = user

    async def token(self) -> str:
        return token(self._user)


class _BlockingToken(OauthTokenProvider):
    def __init__(self, user: str) -> None:
        self._user = user

    def token(self) -> str:
        return token(self._user)

    def extensions(self) -> dict[str, str]:
        return {}


def confluent(bootstrap: str, way: Way, topic: str, client_id: str) -> int:
    """Send COUNT messages and read them back; return the number read."""
    base = {"bootstrap.servers": bootstrap, "client.id": client_id, **way.librdkafka()}
    producer = confluent_kafka.Producer(base)
    for number in range(COUNT):
        producer.produce(topic, str(number).encode())
    assert producer.flush(SECONDS) == 0
    consumer = confluent_kafka.Consumer({**base, "group.id": new_group(), "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])

    def poll() -> int:
        message = consumer.poll(0.2)
        return 0 if message is None or message.error() is not None else 1

    return _consumed(consumer, poll)


def aiokafka(bootstrap: str, way: Way, topic: str, client_id: str) -> int:
    return asyncio.run(_aiokafka(bootstrap, way, topic, client_id))


async def _aiokafka(bootstrap: str, way: Way, topic: str, client_id: str) -> int:
    base = {"bootstrap_servers": bootstrap, "client_id": client_id, **way.aiokafka()}
    got = 0
    async with AIOKafkaProducer(**base) as producer:
        for number in range(COUNT):
            await producer.send_and_wait(topic, str(number).encode())
    async with AIOKafkaConsumer(
        topic, group_id=new_group(), auto_offset_reset="earliest", **base
    ) as consumer:
        async with asyncio.timeout(SECONDS):
            while got < COUNT:
                batches = await consumer.getmany(timeout_ms=500)
                got += sum(len(records) for records in batches.values())
    return got


def kafka_python_(bootstrap: str, way: Way, topic: str, client_id: str) -> int:
    base = {"bootstrap_servers": bootstrap, "client_id": client_id, **way.kafka_python()}
    with contextlib.closing(base["ssl_context"] or contextlib.ExitStack()):
        producer = kafka_python.KafkaProducer(**base)
        try:
            for sent in [producer.send(topic, str(number).encode()) for number in range(COUNT)]:
                sent.get(SECONDS)
        finally:
            producer.close()
        consumer = kafka_python_consumer(topic, group_id=new_group(), auto_offset_reset="earliest", **base)
        return _consumed(consumer, lambda: sum(map(len, consumer.poll(500).values())))


def _consumed(consumer: Any, poll: Callable[[], int]) -> int:
    """Poll until all messages have arrived; `poll` returns the number of new ones. Return the total."""
    got = 0

    def enough() -> bool:
        nonlocal got
        got += poll()
        return got >= COUNT

    try:
        wait_until(enough, f"{COUNT} messages", SECONDS)
    finally:
        consumer.close()
    return got


def java(kafka: EmbeddedKafka, bootstrap: str, way: Way, topic: str, client_id: str) -> int:
    """Send with the performance tool; return the number of messages that it reports."""
    config = tool_config(kafka.folder, way, client_id)
    output = kafka.run_tool(
        "kafka-producer-perf-test",
        *("--bootstrap-server", bootstrap, "--topic", topic, "--command-config", config),
        *("--num-records", str(COUNT), "--record-size", "10", "--throughput", "-1"),
    ).stdout
    return int(output.splitlines()[-1].split()[0])


def tool_config(folder: Path, way: Way, client_id: str = "tool") -> str:
    """Write a file for the option --command-config of Kafka's tools."""
    file = folder / f"{uuid.uuid4().hex}.properties"
    settings = {"client.id": client_id, **way.java()}
    file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    return str(file)


Client = Callable[[str, Way, str, str], int]
PYTHON_CLIENTS: Final[dict[str, Client]] = {
    "confluent-kafka": confluent,
    "aiokafka": aiokafka,
    "kafka-python": kafka_python_,
}
