"""Quota files: what of the proxy's configuration a replay takes."""

from pathlib import Path

import pytest

from pipeline.errors import InputError
from pipeline.inputs.quota_file import Quotas, QuotaSet, read_quotas, to_yaml
from proxy.quota.identity import QuotaEntity


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("clients: []", ".yaml: quotas: "),
        ("quotas: {clients: [{producer_byte_rate: 1}]}", "quotas.clients[0]: entity: "),
        ("quotas: {clients: [{entity: {user: a}, producer_rate: 1}]}", "producer_rate "),
        ("quotas: {clients: [{entity: {user: a}, producer_byte_rate: -1}]}", "producer_byte_rate is -1"),
        ("quotas: {clients: [{entity: {user: 5}, producer_byte_rate: 1}]}", "user is 5"),
        ("quotas: {algorithm: fair}", "'fair' - at `quotas.algorithm`"),
        ("quotas: {scope: proxy}", "'proxy' - at `quotas.scope`"),
        (
            "quotas: {clients: [{entity: {user: a}, scope: proxy, producer_byte_rate: 1}]}",
            "quotas.clients[0]: scope: 'proxy': ",
        ),
        (
            "quotas: {clients: [{entity: {user: a}, producer_byte_rate: 1},"
            " {entity: {user: a}, consumer_byte_rate: 1}]}",
            "quotas.clients[1]: user a ",
        ),
    ],
)
def test_wrong_quotas_are_named(tmp_path: Path, text: str, named: str) -> None:
    file = tmp_path / "quotas.yaml"
    file.write_text(text)
    with pytest.raises(InputError) as error:
        read_quotas(file)
    assert named in str(error.value)


def quotas_of(tmp_path: Path, text: str) -> QuotaSet:
    file = tmp_path / "quotas.yaml"
    file.write_text(text)
    return read_quotas(file)


def test_what_a_replay_takes_of_a_configuration(tmp_path: Path) -> None:
    found = quotas_of(
        tmp_path,
        """
        listeners: [{bootstrap_port: 1}]
        quotas:
          mode: enforce
          clients:
          - {entity: {user: alice}, producer_byte_rate: 5}
          - {entity: {user: bob}, producer_byte_rate: 7, expires: 2026-01-01T00:00:00Z}
          topics: {orders: {producer.byte.rate: 9, retention.ms: 1}}
          brokers: {1: {total.bytes.in.per.sec.threshold: 11}}
        """,
    )
    assert found.clients == {QuotaEntity("alice", None): {"producer_byte_rate": 5.0}}, "bob's expires"
    assert found.topics == {"orders": {"producer.byte.rate": "9"}}, "configs that cannot be replayed are not"
    assert found.brokers == {"1": {"total.bytes.in.per.sec.threshold": "11"}}


@pytest.mark.parametrize(
    ("settings", "seconds"),
    [
        (Quotas(burst_seconds=3.0), 3.0),
        (Quotas(algorithm="window", window_num=11, window_size_seconds=2.0), 20.0),
        (Quotas(algorithm="window", window_num=1, window_size_seconds=2.0), 2.0),
    ],
)
def test_how_much_a_client_may_use_at_once(settings: Quotas, seconds: float) -> None:
    assert QuotaSet(settings).burst_seconds == seconds


def test_what_is_written_can_be_read(tmp_path: Path) -> None:
    quotas = {
        QuotaEntity("O'Neill: \u00e9", None): {"producer_byte_rate": 5},
        QuotaEntity("", "c"): {"consumer_byte_rate": 6, "producer_byte_rate": 7},
    }
    assert quotas_of(tmp_path, to_yaml(quotas)).clients == quotas
