"""Reports as records of the topic, and what is none."""

import json
from typing import Any

import pytest

from proxy.quota.sharing.reports import SATURATED, BucketReport, Report
from proxy.store.quota_records import Unreadable
from proxy.store.sharing.share_records import decode_report, encode_report

FIELDS = ("key", "limit", "used", "demand", "waiting", "debt")
GOOD = {"v": 1, "instance": "a/1", "number": 1, "read_to": 0}


def test_a_report_survives() -> None:
    bucket: dict[str, Any] = {
        "key": "k,\n'\"\x00é",
        "limit": 5.5,
        "used": -3.25,
        "demand": SATURATED,
        "waiting": 2,
        "debt": 3.5,
    }
    report = Report(
        instance="a/1",
        number=7,
        read_to=9,
        buckets=[BucketReport(**bucket)],
        leaving=True,
    )
    read = decode_report(encode_report(report))
    assert (read.instance, read.number, read.read_to, read.leaving) == ("a/1", 7, 9, True)
    assert [{name: getattr(entry, name) for name in FIELDS} for entry in read.buckets] == [bucket]


def test_a_heartbeat_is_small() -> None:
    assert len(encode_report(Report(instance="a/1", number=7, read_to=9, buckets=[]))) < 60


@pytest.mark.parametrize(
    "value",
    [
        None,
        b"",
        b"{",
        b"\xff",
        b"[]",
        json.dumps({**GOOD, "instance": ""}).encode(),
        json.dumps({**GOOD, "instance": "a" * 1001}).encode(),
        json.dumps({**GOOD, "number": 0}).encode(),
        json.dumps({**GOOD, "cluster": 5}).encode(),
        json.dumps({**GOOD, "cluster": "c" * 1001}).encode(),
        json.dumps({**GOOD, "read_to": -1}).encode(),
        json.dumps({**GOOD, "number": "1"}).encode(),
        json.dumps({**GOOD, "v": 0}).encode(),
        json.dumps({"v": 2, "who": "x"}).encode(),
        json.dumps({**GOOD, "v": 2, "number": 0}).encode(),
    ],
)
def test_what_is_no_report(value: bytes | None) -> None:
    with pytest.raises(Unreadable):
        decode_report(value)


@pytest.mark.parametrize(
    "bucket",
    [
        ["k", 0.0, 0.0, 0.0, 0],
        ["k", -1.0, 0.0, 0.0, 0],
        ["k", 1e999, 0.0, 0.0, 0],
        ["k", 1.0, 1e999, 0.0, 0],
        ["k", 1.0, 0.0, -1.0, 0],
        ["k", 1.0, 0.0, 1e999, 0],
        ["k", 1.0, 0.0, 0.0, -1],
        ["k", 1.0, 0.0, 0.0, 1 << 31],
        ["", 1.0, 0.0, 0.0, 0],
        ["k", 1.0, 0.0, 0.0],
    ],
)
def test_a_bucket_out_of_range(bucket: list[Any]) -> None:
    text = json.dumps({**GOOD, "buckets": [bucket]}).replace("Infinity", "1e999")
    with pytest.raises(Unreadable):
        decode_report(text.encode())


@pytest.mark.parametrize("debt", [[1, 5.0], [-1, 5.0], [0, -1.0], [0, 1e999], [0]])
def test_a_debt_out_of_range(debt: list[float]) -> None:
    record = {**GOOD, "buckets": [["k", 1.0, 0.0, 0.0, 0]], "debts": [debt]}
    with pytest.raises(Unreadable):
        decode_report(json.dumps(record).replace("Infinity", "1e999").encode())


def test_a_report_of_an_older_version_has_no_debts() -> None:
    [read] = decode_report(json.dumps({**GOOD, "buckets": [["k", 1.0, 0.0, 0.0, 0]]}).encode()).buckets
    assert read.debt == 0.0


def test_a_newer_format_has_a_head_that_can_be_read() -> None:
    newer = {**GOOD, "v": 2, "buckets": {"of": "another shape"}, "leaving": True, "more": 1}
    read = decode_report(json.dumps(newer).encode())
    assert (read.newer, read.instance, read.number, read.leaving, read.buckets) == (True, "a/1", 1, True, [])
    assert not decode_report(json.dumps(GOOD).encode()).newer
