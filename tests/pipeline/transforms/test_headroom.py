"""Headroom: use is compared where the quota is measured, at each proxy and broker or over the cluster."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import Result
from pyspark.sql import DataFrame

from pipeline.inputs.quota_file import Quotas, QuotaSet, read_quotas
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


def quotas(scopes: dict[str, str | None], default: str = "broker") -> QuotaSet:
    """A quota of LIMIT for each of these users, with its own scope if one is given."""
    entities = {user: QuotaEntity(user, None) for user in scopes}
    return QuotaSet(
        Quotas(scope=default),  # type: ignore[arg-type]
        {entity: {IN: LIMIT} for entity in entities.values()},
        scopes={entities[user]: scope for user, scope in scopes.items() if scope is not None},
    )


@pytest.mark.parametrize(
    ("default", "scopes", "expected"),
    [
        ("broker", {"alice": None, DEFAULT: None}, {"alice": "broker", "bob": "broker"}),
        (
            "broker",
            {"alice": None, "carol": "cluster", DEFAULT: "cluster"},
            {"alice": "broker", "carol": "cluster", "bob": "cluster"},
        ),
        (
            "cluster",
            {"alice": None, "carol": "broker", DEFAULT: None},
            {"alice": "cluster", "carol": "broker", "bob": "cluster"},
        ),
    ],
)
def test_use_is_compared_by_scope(
    frame: Frame, default: str, scopes: dict[str, str | None], expected: dict[str, str]
) -> None:
    """Bob has the quota of users by default."""
    events = [event for user in expected for event in two_proxies_and_three_brokers(user=user)]
    found = {row.user: row for row in headroom(frame(*events), quotas(scopes, default)).collect()}
    rates = {"broker": max(BROKER_RATES.values()), "cluster": ALL_RATES}
    assert set(found) == set(expected)
    for user, scope in expected.items():
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
    (row,) = headroom(frame(*events), quotas({DEFAULT: None}, "cluster")).collect()
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
