"""Recommend: p99 with headroom, within a capacity, lowered in steps; as a file that the proxy takes."""

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from pyspark.sql import DataFrame

from pipeline.quota_file import Quotas, QuotaSet, to_yaml
from pipeline.transforms.headroom import headroom
from pipeline.transforms.recommend import PER_CLIENT_ID, PER_USER, Rules, peaks, recommend
from proxy.cli.quotas.quota_file import read_quotas
from proxy.quota.identity import QuotaEntity
from tests.support.messages.usage_events import make_event, write_lines

Frame = Callable[..., DataFrame]
KIB = 1024
IN = "producer_byte_rate"
OUT = "consumer_byte_rate"


def rates(table: DataFrame) -> dict[tuple[str, str, str, str], float]:
    return {(row.user, row.client_id, row.quota, row.broker): row.p99_rate for row in table.collect()}


def test_peaks_are_of_intervals_with_traffic_on_one_broker(frame: Frame) -> None:
    events = [make_event(at=10_000 * step, bytes_in=10_000 * step) for step in range(101)]
    found = rates(
        peaks(
            frame(
                *events,
                make_event(bytes_in=5_000, broker=2),
                make_event(bytes_in=5_000, broker=2, partition=1),
                make_event(api="Fetch", bytes_in=9, bytes_out=70_000),
                make_event(api="Metadata", bytes_in=10**9),
            )
        )
    )
    assert found == {
        ("alice", "billing", IN, "local/1"): pytest.approx(99_010),
        ("alice", "billing", IN, "local/2"): 1_000,
        ("alice", "billing", OUT, "local/1"): 7_000,
    }


def test_each_proxy_counts_for_itself(frame: Frame) -> None:
    events = frame(*[make_event(bytes_in=10_000, proxy=f"proxy-{number}") for number in range(3)])
    assert [row.p99_rate for row in peaks(events).collect()] == [1_000] * 3
    quotas = QuotaSet(Quotas(), clients={QuotaEntity("alice", None): {IN: 1_000.0}})
    (row,) = headroom(events, quotas).collect()
    assert (row.limit, row.p99_rate, row.max_rate, row.used) == (1_000, 1_000, 1_000, 1.0)


def test_for_users_or_for_client_ids(frame: Frame) -> None:
    events = frame(make_event(client_id="a", bytes_in=1_000), make_event(client_id="b", bytes_in=2_000))
    assert rates(peaks(events, PER_USER)) == {("alice", "", IN, "local/1"): 300}
    assert rates(peaks(events, PER_CLIENT_ID)) == {
        ("", "a", IN, "local/1"): 100,
        ("", "b", IN, "local/1"): 200,
    }


def test_headroom_over_the_busiest_broker() -> None:
    found = [("alice", "a", IN, "c/1", 1000.0 * KIB), ("alice", "a", IN, "c/2", 10.0 * KIB)]
    assert recommend(found, Rules(1.5), {}) == {QuotaEntity("alice", "a"): {IN: 1500 * KIB}}


def test_a_small_tenant_gets_something() -> None:
    assert recommend([("alice", "", OUT, "c/1", 3.0)], Rules(), {}) == {
        QuotaEntity("alice", None): {OUT: KIB}
    }


def test_quotas_of_a_broker_keep_within_its_capacity() -> None:
    found = [
        ("a", "", IN, "c/1", 6000.0 * KIB),
        ("b", "", IN, "c/1", 2000.0 * KIB),
        ("c", "", IN, "c/2", 1000.0 * KIB),
        ("b", "", OUT, "c/1", 3000.0 * KIB),
    ]
    quotas = recommend(found, Rules(1.0, capacity=4000.0 * KIB), {})
    assert quotas == {
        QuotaEntity("a", None): {IN: 3000 * KIB},
        QuotaEntity("b", None): {IN: 1000 * KIB, OUT: 3000 * KIB},
        QuotaEntity("c", None): {IN: 1000 * KIB},
    }


def test_a_quota_comes_down_in_steps_and_goes_up_at_once() -> None:
    found = [("a", "", IN, "c/1", 100.0 * KIB), ("b", "", IN, "c/1", 5000.0 * KIB)]
    current = {QuotaEntity("a", None): {IN: 1000.0 * KIB}, QuotaEntity("b", None): {IN: 1000.0 * KIB}}
    assert recommend(found, Rules(1.0, step=0.25), current) == {
        QuotaEntity("a", None): {IN: 750 * KIB},
        QuotaEntity("b", None): {IN: 5000 * KIB},
    }


def test_names_that_a_file_cannot_have_are_skipped() -> None:
    found = [(user, "", IN, "c/1", 1.0) for user in ("<default>", "<rest>", "")]
    assert recommend(found, Rules(), {}) == {}


def test_the_file_is_what_quotas_import_takes(run_job: Callable[..., Result], tmp_path: Path) -> None:
    events = [
        make_event(user="O'Neill: #1", client_id="ünï", bytes_in=10 * KIB * 1000),
        make_event(user="42", client_id="", api="Fetch", bytes_out=10 * KIB * 500),
    ]
    lines = write_lines(tmp_path / "events.jsonl", events)
    result = run_job("recommend", "--events", lines, "--out", tmp_path, "--headroom", "1.5")
    assert result.exit_code == 0, result.output
    assert read_quotas(tmp_path / "quotas.yaml").lasting == {
        (("user", "O'Neill: #1"), ("client-id", "ünï")): {IN: 1500.0 * KIB},
        (("user", "42"),): {OUT: 750.0 * KIB},
    }


def test_no_traffic_is_a_file_without_quotas(tmp_path: Path) -> None:
    file = tmp_path / "quotas.yaml"
    file.write_text(to_yaml({}))
    assert read_quotas(file).lasting == {}
