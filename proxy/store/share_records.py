"""Records of the topic by which proxies share limits: JSON, one per report.

    {"v": 1, "instance": "proxy-1/5f0c", "number": 12, "read_to": 345,
     "buckets": [["18:producer_byte_rate5:alice0:0:0:-1/1", 1048576.0, 734003.2, null, 3]]}

A bucket is its key, limit, sum of uses, demand (null: all it can get) and waiting connections. A process that
stops writes `"leaving": true`. docs/sharing.md describes what they mean.
"""

import math
from typing import Final

import msgspec

from proxy.quota.sharing.reports import SATURATED, BucketReport, Report
from proxy.store.records import Unreadable

VERSION: Final = 1
MAX_NAME: Final = 1000
"""Characters of an instance's name, and of a bucket's key."""


class _Head(msgspec.Struct):
    v: int


class _Record(msgspec.Struct, omit_defaults=True):
    v: int
    instance: str
    number: int
    read_to: int
    buckets: list[tuple[str, float, float, float | None, int]] = []
    leaving: bool = False


_HEAD: Final = msgspec.json.Decoder(_Head)
_RECORD: Final = msgspec.json.Decoder(_Record)


def encode_report(report: Report) -> bytes:
    """The value of the record."""
    return msgspec.json.encode(
        _Record(
            v=VERSION,
            instance=report.instance,
            number=report.number,
            read_to=report.read_to,
            buckets=[
                (
                    entry.key,
                    entry.limit,
                    entry.used,
                    None if entry.demand == SATURATED else entry.demand,
                    entry.waiting,
                )
                for entry in report.buckets
            ],
            leaving=report.leaving,
        )
    )


def decode_report(value: bytes | None) -> Report:
    """Read the value of a record. Raises Unreadable."""
    try:
        version = _HEAD.decode(value or b"null").v
        if version != VERSION:
            raise Unreadable(f"its version is {version}; this proxy reads version {VERSION}: upgrade it")
        record = _RECORD.decode(value or b"null")
    except msgspec.DecodeError as error:
        raise Unreadable(f"it is no report of a proxy: {error}") from error
    if not 0 < len(record.instance) <= MAX_NAME or record.number < 1 or record.read_to < 0:
        raise Unreadable("it is no report of a proxy: its instance, number or read_to is out of range")
    return Report(
        instance=record.instance,
        number=record.number,
        read_to=record.read_to,
        buckets=[_bucket(*entry) for entry in record.buckets],
        leaving=record.leaving,
    )


def _bucket(key: str, limit: float, used: float, demand: float | None, waiting: int) -> BucketReport:
    wanted = 0.0 if demand is None else demand
    if not (
        0 < len(key) <= MAX_NAME
        and 0.0 < limit < math.inf
        and abs(used) < math.inf
        and 0.0 <= wanted < math.inf
        and 0 <= waiting < 1 << 31
    ):
        raise Unreadable(f"a number of bucket {key[:100]!r} is out of range")
    return BucketReport(
        key=key,
        limit=limit,
        used=used,
        demand=SATURATED if demand is None else wanted,
        waiting=waiting,
    )
