"""Headroom: use is compared where the quota is measured, at each proxy and broker or over the cluster."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import Result
from pyspark.sql import DataFrame

from pipeline.quota_file import Quotas, QuotaSet, read_quotas
from pipeline.transforms.headroom import headroom
from proxy.quota.identity import DEFAULT, QuotaEntity
from tests.support.messages.usage_events import make_event, write_lines

Frame = Callable[..., DataFrame]
IN = "producer_byte_rate"
LIMIT = 10_240.0
BROKER_RATES = {1: 1024.0, 2: 2048.0, 3: 8192.0}
"""Bytes/s through each of two proxies."""
ALL_RATES = 2 * sum(BROKER_RATES.values())


def two_proxies_and_three_brokers(**values: Any) -> list[dict[str, Any]]:
    """The second proxy begins its intervals 3 s after the first one; the partitions of a broker differ."""
    return [
        make_event(
            proxy=f"proxy-{proxy}",
            broker=broker,
            partition=partition,
            at=10_000 * interval + 3_000 * proxy,
            bytes_in=round(rate * 10 / 2),
            **values,
        )
        for proxy in range(2)
        for broker, rate in BROKER_RATES.items()
        for partition in range(2)
        for interval in range(3)
    ]


def quotas(*scopes: str, default: str = "broker") -> QuotaSet:
    """A quota of LIMIT for alice, and for users by default, each with its own scope if one is given."""
    entities = [QuotaEntity("alice", None), QuotaEntity(DEFAULT, None)]
    return QuotaSet(
        Quotas(scope=default),  # type: ignore[arg-type]
        {entity: {IN: LIMIT} for entity in entities},
        scopes=dict(zip(entities, scopes, strict=False)),
    )


@pytest.mark.parametrize(
    ("quotas", "alice", "bob"),
    [
        (quotas(), "broker", "broker"),
        (quotas("cluster"), "cluster", "broker"),
        (quotas("broker", "cluster"), "broker", "cluster"),
        (quotas(default="cluster"), "cluster", "cluster"),
        (quotas("broker", default="cluster"), "broker", "cluster"),
    ],
)
def test_use_is_compared_by_scope(frame: Frame, quotas: QuotaSet, alice: str, bob: str) -> None:
    events = [*two_proxies_and_three_brokers(), *two_proxies_and_three_brokers(user="bob")]
    found = {row.user: row for row in headroom(frame(*events), quotas).collect()}
    rates = {"broker": max(BROKER_RATES.values()), "cluster": ALL_RATES}
    for user, scope in (("alice", alice), ("bob", bob)):
        row = found[user]
        assert (row.scope, row.limit) == (scope, LIMIT)
        assert row.p99_rate == pytest.approx(rates[scope])
        assert row.max_rate == pytest.approx(rates[scope])
        assert row.used == pytest.approx(rates[scope] / LIMIT)


def test_a_proxy_that_begins_two_intervals_in_one_counts_once(frame: Frame) -> None:
    """Its intervals are some milliseconds longer than they should be, or shorter."""
    events = [
        make_event(at=at, interval_ms=length, bytes_in=length, proxy=proxy)
        for proxy, at, length in (("a", 1, 9_996), ("a", 9_997, 9_996), ("b", 5_000, 10_004))
    ]
    (row,) = headroom(frame(*events), quotas(default="cluster")).collect()
    assert row.max_rate == pytest.approx(2_000)


@pytest.mark.parametrize(
    ("options", "current", "expected"),
    [
        ((), None, {IN: 8192}),
        (("--scope", "cluster"), None, {"scope": "cluster", IN: 22528}),
        ((), {"scope": "cluster"}, {"scope": "cluster", IN: 22528}),
        (("--scope", "broker"), {"scope": "cluster"}, {IN: 8192}),
        (
            (),
            {"clients": [{"entity": {"user": "alice"}, "scope": "cluster", IN: 1024}]},
            {"scope": "cluster", IN: 22528},
        ),
    ],
)
def test_a_quota_is_recommended_for_its_scope(
    run_job: Callable[..., Result],
    tmp_path: Path,
    options: tuple[str, ...],
    current: dict[str, Any] | None,
    expected: dict[str, Any],
) -> None:
    lines = write_lines(tmp_path / "events.jsonl", two_proxies_and_three_brokers())
    if current is not None:
        file = tmp_path / "current.yaml"
        file.write_text(yaml.safe_dump({"quotas": current}))
        options = (*options, "--current", str(file))
    arguments = ("--events", lines, "--out", tmp_path, "--headroom", "1", "--per", "user", *options)
    result = run_job("recommend", *arguments)
    assert result.exit_code == 0, result.output
    (found,) = yaml.safe_load((tmp_path / "quotas.yaml").read_text())["quotas"]["clients"]
    assert found == {"entity": {"user": "alice"}, **expected}
    scope = expected.get("scope", "broker")
    assert read_quotas(tmp_path / "quotas.yaml").scope(QuotaEntity("alice", None)) == scope
