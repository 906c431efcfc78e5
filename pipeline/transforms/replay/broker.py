"""What-if of the broker-side quota: replays what producers sent to each broker through its rule.

The quota compares its threshold with one-minute averages that are updated every five seconds. To replay the
bytes of each second is therefore as exact as to replay single requests. Bytes that were rejected in the
events are offered again.
"""

from typing import Any, Final

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StringType, StructField, StructType

from pipeline.inputs.quota_file import QuotaSet
from pipeline.transforms.totals import LARGEST, total
from proxy.quota.cluster_view import ClusterView
from proxy.quota.identity import Identity
from proxy.quota.kinds.broker_bytes_in import KIND, SHARE
from proxy.quota.measure.bucket import Bucket
from proxy.wire.api_keys import PRODUCE
from proxy.wire.cursor import NO_ID
from proxy.wire.views import Item, RequestView

_BROKER: Final = ("cluster", "proxy", "listener", "broker")
_AFTER: Final = StructType(
    [
        StructField("cluster", StringType()),
        StructField("user", StringType()),
        StructField("client_id", StringType()),
        StructField("quota", StringType()),
        StructField("rejected_bytes", LongType()),
    ]
)


def rejected(events: DataFrame, quotas: QuotaSet) -> DataFrame:
    """Return `cluster, user, client_id, quota, rejected_bytes`.

    Each broker of each proxy is replayed on its own.
    """
    offered = (
        events.where((F.col("api") == "Produce") & F.col("topic").isNotNull())
        .groupBy(*_BROKER, "user", "client_id", "topic", "interval_start_ms")
        .agg(
            F.max("interval_ms").alias("interval_ms"),
            total(F.col("bytes_in") + F.col("rejected_bytes")).alias("bytes"),
        )
    )

    def run(rows: Any) -> Any:
        cluster = str(rows["cluster"].iloc[0])
        found = [(cluster, *row) for row in simulate_broker(rows, quotas)]
        return pd.DataFrame(found, columns=_AFTER.names)

    found = offered.groupBy(*_BROKER).applyInPandas(run, _AFTER)
    tenants = found.groupBy("cluster", "user", "client_id", "quota")
    return tenants.agg(total("rejected_bytes").alias("rejected_bytes"))


def simulate_broker(rows: Any, quotas: QuotaSet) -> list[tuple[str, str, str, int]]:
    """Replay the intervals of one broker. Return a row of `_AFTER`, without the cluster, for each tenant with
    rejected bytes.
    """
    node_id = int(rows["broker"].iloc[0])
    quota = KIND.build()
    quota.join(node_id, [])
    quota.configure(quotas.limits(), 0.0)
    view = ClusterView("", {}, {}, {(topic, 0): node_id for topic in set(rows["topic"])})
    quota.see_cluster(view, 0.0)
    nobody = RequestView(PRODUCE, 0, 0, "", 0)
    rows = rows.sort_values("interval_start_ms", kind="stable")
    base = float(rows["interval_start_ms"].iloc[0])
    lost: dict[tuple[str, str], int] = {}
    for start, interval in rows.groupby("interval_start_ms", sort=True):
        seconds = max(1, round(float(interval["interval_ms"].max()) / 1000))
        sent = [
            (Identity(row.user, row.client_id, ""), Item(row.topic, NO_ID, 0, round(row.bytes / seconds)))
            for row in interval.itertuples()
        ]
        for second in range(seconds):
            now = (start - base) / 1000 + second
            for who, item in sent:
                over: dict[int, Bucket] = {}
                quota.reject([item], over, now)
                if over:
                    name = (who.principal, who.client_id)
                    lost[name] = lost.get(name, 0) + item.size
                else:
                    quota.charge_items(nobody, [item], who, now)
    return [(user, client_id, SHARE, min(size, LARGEST)) for (user, client_id), size in lost.items()]
