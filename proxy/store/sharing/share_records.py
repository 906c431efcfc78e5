"""Records of the topic through which proxies share limits: JSON, one per report.

    {"v": 1, "instance": "proxy-1/5f0c", "number": 12, "read_to": 345, "cluster": "kafka",
     "buckets": [["18:producer_byte_rate5:alice0:0:0:-1/1", 1048576.0, 734003.2, null, 3]]}

A bucket is its key, limit, sum of uses, demand (null: all it can get) and waiting connections. If the waits
of some are bounded, the record has `"debts": [[0, 55.2]]`: the index of a bucket, and what is owed besides
its uses; older proxies skip this field. A process that stops writes `"leaving": true`. docs/sharing.md
describes what they mean. A newer format must keep the fields `v`, `instance`, `number`, `read_to` and
`leaving`: by these, older proxies count its processes.
"""

from typing import Final

import msgspec

from proxy.quota.sharing.reports import MAX_NAME, SATURATED, Report, bucket_reports
from proxy.store.quota_records import Unreadable

VERSION: Final = 1


class _Version(msgspec.Struct):
    v: int


class _Head(msgspec.Struct, omit_defaults=True):
    """The fields of every version of the format."""

    v: int
    instance: str
    number: int
    read_to: int
    leaving: bool = False
    cluster: str = ""
    """The `cluster` of the process's configuration; empty if it has none, or does not write this field."""


class _Cluster(msgspec.Struct):
    cluster: str = ""


class _Record(_Head, omit_defaults=True):
    buckets: list[tuple[str, float, float, float | None, int]] = []
    debts: list[tuple[int, float]] = []


_VERSION: Final = msgspec.json.Decoder(_Version)
_CLUSTER: Final = msgspec.json.Decoder(_Cluster)
_HEAD: Final = msgspec.json.Decoder(_Head)
_RECORD: Final = msgspec.json.Decoder(_Record)


def encode_report(report: Report, cluster: str = "") -> bytes:
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
            debts=[(index, entry.debt) for index, entry in enumerate(report.buckets) if entry.debt > 0.0],
            leaving=report.leaving,
            cluster=cluster,
        )
    )


def decode_report(value: bytes | None) -> Report:
    """Read the value of a record. Raises Unreadable."""
    raw = value or b"null"
    try:
        newer = _VERSION.decode(raw).v > VERSION
        record = None if newer else _RECORD.decode(raw)
        head = _HEAD.decode(raw) if record is None else record
    except msgspec.DecodeError as error:
        raise Unreadable(f"not a report of a proxy: {error}") from error
    named = 0 < len(head.instance) <= MAX_NAME and len(head.cluster) <= MAX_NAME
    if head.v < 1 or not named or head.number < 1 or head.read_to < 0:
        raise Unreadable("not a report of a proxy: v, instance, cluster, number or read_to is out of range")
    try:
        buckets = [] if record is None else bucket_reports(record.buckets, record.debts)
    except ValueError as error:
        raise Unreadable(f"a number of bucket {error} is out of range") from error
    return Report(
        instance=head.instance,
        number=head.number,
        read_to=head.read_to,
        buckets=buckets,
        leaving=head.leaving,
        newer=newer,
    )


def cluster_of(value: bytes) -> str:
    """The cluster of a report that decode_report() accepts; empty if it names none."""
    return _CLUSTER.decode(value).cluster
