"""Clients are offered the API versions that the broker and the proxy both support."""

from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from proxy.admin.dispatch import APIS
from proxy.demo.embedded_kafka import EmbeddedKafka
from proxy.wire.api_keys import API_VERSIONS, PRODUCE
from tests.support.kafka.raw_client import RawClient
from tests.support.messages.kio_messages import read_frame, request_frame, response_type, versions
from tests.support.messages.requests import api_versions, metadata
from tests.support.process.proxy_process import ProxyProcess
from tests.support.waiting import wait_until

pytestmark = pytest.mark.kafka
NOT_SPOKEN = 99


def _response(port: int, version: int = 3) -> Any:
    with RawClient(port) as client:
        return client.ask(api_versions(version))


def _ranges(response: Any) -> dict[int, tuple[int, int]]:
    return {api.api_key: (api.min_version, api.max_version) for api in response.api_keys}


def test_the_proxy_reads_the_newest_versions_of_the_broker(kafka: EmbeddedKafka) -> None:
    """A failure means that Kafka has a newer version of an API than the module named here supports."""
    behind = []
    for key, (_, newest) in _ranges(_response(kafka.port(1))).items():
        api = APIS.known[key] if key < len(APIS.known) else None
        if api is not None and newest > api.newest:
            behind.append(f"{api.name} ({type(api).__module__}): v{api.newest} is ours, v{newest} is Kafka's")
    assert behind == []


def test_every_api_that_the_proxy_reads_is_still_there(kafka: EmbeddedKafka) -> None:
    known = _ranges(_response(kafka.port(1)))
    gone = [api.name for api in APIS.known if api is not None and api.key not in known]
    assert gone == []


@pytest.mark.parametrize("version", versions(API_VERSIONS))
def test_clients_are_offered_what_both_know(version: int, kafka: EmbeddedKafka, proxy: ProxyProcess) -> None:
    native, offered = (_response(port, version) for port in (kafka.port(1), proxy.bootstrap_port))
    expected = {}
    for key, (oldest, newest) in _ranges(native).items():
        api = APIS.known[key] if key < len(APIS.known) else None
        expected[key] = (oldest, newest) if api is None else (oldest, min(newest, api.newest))
    assert _ranges(offered) == expected
    assert expected[PRODUCE][0] == 0, "librdkafka takes a broker without Produce v0 for an ancient one"
    for field in ("supported_features", "finalized_features"):
        assert getattr(offered, field, None) == getattr(native, field, None)
    # It is an offset of the metadata log, which may have grown between the two.
    epoch = "finalized_features_epoch"
    assert (getattr(offered, epoch, None) or 0) >= (getattr(native, epoch, None) or 0)


def test_transactions_of_the_new_kind_are_announced(proxy: ProxyProcess) -> None:
    """KIP-890: clients use them if the finalized feature is announced."""
    response = _response(proxy.bootstrap_port)
    levels = {feature.name: feature.max_version_level for feature in response.finalized_features}
    assert levels["transaction.version"] >= 2


def test_an_unknown_version_gets_a_response(kafka: EmbeddedKafka, proxy: ProxyProcess) -> None:
    """KIP-511: the response is v0, with the supported versions."""
    newer = bytearray(request_frame(api_versions(), correlation_id=5))
    newer[6:8] = NOT_SPOKEN.to_bytes(2, "big")
    responses = []
    for port in (kafka.port(1), proxy.bootstrap_port):
        with RawClient(port) as client:
            client.send_bytes(bytes(newer))
            responses.append(read_frame(response_type(API_VERSIONS, 0), client.receive_frame()))
            # The connection lives on, and the client takes another version.
            assert client.ask(api_versions()).error_code == ErrorCode.none
    native, own = responses
    assert own.error_code == native.error_code == ErrorCode.unsupported_version
    assert API_VERSIONS in _ranges(own)
    assert _ranges(own)[API_VERSIONS] == _ranges(native)[API_VERSIONS]


def test_a_version_that_was_not_offered_ends_the_connection(proxy: ProxyProcess) -> None:
    newer = bytearray(request_frame(metadata([])))
    newer[6:8] = NOT_SPOKEN.to_bytes(2, "big")
    with RawClient(proxy.bootstrap_port) as client:
        client.send_bytes(bytes(newer))
        assert client.ended()
    said = f"Metadata v{NOT_SPOKEN} is not supported"
    wait_until(lambda: proxy.log_lines(said), "the log's line")


def test_apis_that_nobody_reads_are_counted(kafka: EmbeddedKafka, proxy: ProxyProcess) -> None:
    before = proxy.metric("quota_proxy_requests_total", api="ListGroups")
    kafka.run_tool("kafka-groups", "--bootstrap-server", proxy.bootstrap, "--list")
    assert proxy.metric("quota_proxy_requests_total", api="ListGroups") == before + 1
