"""Recommend: p99 with headroom, within a capacity, lowered in steps; as a file that the proxy takes."""

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from pyspark.sql import DataFrame

from pipeline.inputs.quota_file import Quotas, QuotaSet, to_yaml
from pipeline.schema import SKIPPED, of_period
from pipeline.transforms.headroom import headroom
from pipeline.transforms.recommend import (
    DEFAULT_FLOOR,
    PER_CLIENT_ID,
    PER_USER,
    Peak,
    Recommendation,
    Rules,
    peaks,
    recommend,
)
from proxy.cli.quotas.quota_file import read_quotas
from proxy.quota.identity import QuotaEntity
from tests.support.messages.usage_events import make_event, write_lines
from tests.support.tables import read_rows, read_table

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


def test_the_runs_of_a_proxy_count_together(frame: Frame) -> None:
    """A proxy that is restarted often has a few intervals in each run."""
    sizes = {"host-00000001": 10_000, "host-00000002": 20_000, "host-00000003": 30_000}
    events = [
        make_event(proxy=proxy, at=10_000 * place, bytes_in=size)
        for place, (proxy, size) in enumerate(sizes.items())
    ]
    (found,) = peaks(frame(*events)).collect()
    assert (found.samples, found.p99_rate) == (3, pytest.approx(2_980))


def test_for_users_or_for_client_ids(frame: Frame) -> None:
    events = frame(make_event(client_id="a", bytes_in=1_000), make_event(client_id="b", bytes_in=2_000))
    assert rates(peaks(events, PER_USER)) == {("alice", "", IN, "local/1"): 300}
    assert rates(peaks(events, PER_CLIENT_ID)) == {
        ("", "a", IN, "local/1"): 100,
        ("", "b", IN, "local/1"): 200,
    }


def peak(user: str, client_id: str, quota: str, broker: str, rate: float, samples: int = 100) -> Peak:
    return Peak(user, client_id, quota, broker, rate, samples)


def test_headroom_over_the_busiest_broker() -> None:
    found = [peak("alice", "a", IN, "c/1", 1000.0 * KIB), peak("alice", "a", IN, "c/2", 10.0 * KIB)]
    assert recommend(found, Rules(1.5), {}) == Recommendation(
        {QuotaEntity("alice", "a"): {IN: 1500 * KIB}}, []
    )


def test_a_small_tenant_gets_the_floor() -> None:
    found = [peak("alice", "a", OUT, "c/1", 3.0)]
    assert recommend(found, Rules(), {}).quotas == {QuotaEntity("alice", "a"): {OUT: DEFAULT_FLOOR}}
    assert recommend(found, Rules(floor=3000.0), {}).quotas == {QuotaEntity("alice", "a"): {OUT: 3 * KIB}}


def test_a_tenant_with_too_few_intervals_is_skipped() -> None:
    """The place with the most intervals counts."""
    found = [
        peak("few", "a", IN, "c/1", 50.0, samples=9),
        peak("few", "a", IN, "c/2", 70.0, samples=1),
        peak("few", "a", OUT, "c/1", 1000.0 * KIB, samples=10),
        peak("many", "a", IN, "c/1", 1000.0 * KIB, samples=10),
        peak("many", "a", IN, "c/2", 2000.0 * KIB, samples=1),
    ]
    made = recommend(found, Rules(1.0, samples=10), {})
    assert made.quotas == {
        QuotaEntity("few", "a"): {OUT: 1000 * KIB},
        QuotaEntity("many", "a"): {IN: 2000 * KIB},
    }
    (out,) = made.skipped
    assert (out.user, out.client_id, out.quota, out.samples, out.p99_rate) == ("few", "a", IN, 9, 70.0)
    assert "--samples" in out.reason


def test_a_tenant_without_a_client_id_gets_no_quota_of_the_whole_user() -> None:
    found = [peak("alice", "a", IN, "c/1", 1000.0 * KIB), peak("alice", "", IN, "c/1", 2000.0 * KIB)]
    made = recommend(found, Rules(1.0), {})
    assert made.quotas == {QuotaEntity("alice", "a"): {IN: 1000 * KIB}}
    assert [(out.user, out.client_id) for out in made.skipped] == [("alice", "")]
    assert recommend(found[1:], Rules(1.0, per=PER_USER), {}).quotas == {
        QuotaEntity("alice", None): {IN: 2000 * KIB}
    }
    nobody = [peak("", "a", IN, "c/1", 1000.0 * KIB), peak("", "", IN, "c/1", 1000.0 * KIB)]
    made = recommend(nobody, Rules(1.0, per=PER_CLIENT_ID), {})
    assert list(made.quotas) == [QuotaEntity(None, "a")]
    assert [(out.user, out.client_id) for out in made.skipped] == [("", "")]


def test_quotas_of_a_broker_keep_within_its_capacity() -> None:
    found = [
        peak("a", "", IN, "c/1", 6000.0 * KIB),
        peak("b", "", IN, "c/1", 2000.0 * KIB),
        peak("c", "", IN, "c/2", 1000.0 * KIB),
        peak("b", "", OUT, "c/1", 3000.0 * KIB),
    ]
    made = recommend(found, Rules(1.0, capacity=4000.0 * KIB, per=PER_USER), {})
    assert made.quotas == {
        QuotaEntity("a", None): {IN: 3000 * KIB},
        QuotaEntity("b", None): {IN: 1000 * KIB, OUT: 3000 * KIB},
        QuotaEntity("c", None): {IN: 1000 * KIB},
    }


def test_a_quota_comes_down_in_steps_and_goes_up_at_once() -> None:
    found = [peak("a", "", IN, "c/1", 100.0 * KIB), peak("b", "", IN, "c/1", 5000.0 * KIB)]
    current = {QuotaEntity("a", None): {IN: 1000.0 * KIB}, QuotaEntity("b", None): {IN: 1000.0 * KIB}}
    assert recommend(found, Rules(1.0, step=0.25, per=PER_USER), current).quotas == {
        QuotaEntity("a", None): {IN: 750 * KIB},
        QuotaEntity("b", None): {IN: 5000 * KIB},
    }


def test_names_that_a_file_cannot_have_are_skipped() -> None:
    names = ("", "<default>", "<rest>")
    made = recommend([peak(user, "", IN, "c/1", 1e6) for user in names], Rules(per=PER_USER), {})
    assert made.quotas == {}
    assert tuple(out.user for out in made.skipped) == names


def test_the_file_is_what_quotas_import_takes(run_job: Callable[..., Result], tmp_path: Path) -> None:
    events = [
        make_event(at=at, user=user, client_id=client_id, bytes_in=size)
        for user, client_id, size, count in (
            ("O'Neill: #1", "ünï", 10 * KIB * 1000, 5),
            ("42", "app", 10 * KIB * 500, 5),
            ("42", "", 10 * KIB * 500, 5),
            ("once", "app", 7, 1),
        )
        for at in range(0, count * 10_000, 10_000)
    ]
    lines = write_lines(tmp_path / "events.jsonl", events)
    result = run_job("recommend", "--events", lines, "--out", tmp_path, "--headroom", "1.5")
    assert result.exit_code == 0, result.output
    assert read_quotas(tmp_path / "quotas.yaml").lasting == {
        (("user", "O'Neill: #1"), ("client-id", "ünï")): {IN: 1500.0 * KIB},
        (("user", "42"), ("client-id", "app")): {IN: 750.0 * KIB},
    }
    skipped = read_table(tmp_path / "skipped")
    assert skipped.column_names == of_period(SKIPPED).names
    assert sorted((row.user, row.client_id, row.samples) for row in read_rows(tmp_path / "skipped")) == [
        ("42", "", 5),
        ("once", "app", 1),
    ]
    assert f"{tmp_path}/skipped" in result.output


def test_no_traffic_is_a_file_without_quotas(tmp_path: Path) -> None:
    file = tmp_path / "quotas.yaml"
    file.write_text(to_yaml({}))
    assert read_quotas(file).lasting == {}
