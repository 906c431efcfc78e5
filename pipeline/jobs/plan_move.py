"""The job that plans a partition reassignment. Only inbound rates from events need Spark."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from pipeline.cluster.access import PLAINTEXT, BrokerAccess
from pipeline.errors import InputError, PipelineError
from pipeline.inputs.documents import convert, read_yaml
from pipeline.jobs.job import Options, make_folder
from pipeline.spark.session import make_session
from pipeline.storage.filesystem import FilePath
from pipeline.transforms.reassignment import Cluster, Move, Plan
from proxy.errors import UpstreamUnavailable

Rates = Mapping[tuple[str, int], float]


def load(
    cluster: Path | None, bootstrap: str | None, moves: Path | None, access: BrokerAccess = PLAINTEXT
) -> Cluster:
    """Read the cluster from a file or from its brokers; --moves overrides the file's moves."""
    if (cluster is None) == (bootstrap is None):
        raise InputError("set either --cluster FILE or --bootstrap HOST:PORT")
    if cluster is not None:
        value: Any = read_yaml(cluster)
        if isinstance(value, dict) and moves is not None:
            value["moves"] = []
        found = convert(value, Cluster, cluster)
    else:
        # The library of Kafka's protocol takes long to import, and no other job uses it.
        from pipeline.cluster.log_dirs import read_cluster

        try:
            found = asyncio.run(read_cluster(str(bootstrap), access.of_this_process()))
        except (OSError, EOFError, UpstreamUnavailable) as error:
            raise PipelineError(f"cannot read the partitions from {bootstrap}: {error}") from error
    if moves is None:
        if bootstrap is not None:
            raise InputError("--bootstrap requires --moves FILE, the file for kafka-reassign-partitions")
        return found
    return msgspec.structs.replace(found, moves=_read_moves(moves))


def _read_moves(path: Path) -> list[Move]:
    """Read `{"version": 1, "partitions": [...]}`, the file for kafka-reassign-partitions."""
    value = read_yaml(path)
    if not isinstance(value, dict) or "partitions" not in value:
        raise InputError(f"{path}: partitions: missing; expected the file for kafka-reassign-partitions")
    return convert(value["partitions"], list[Move], path, "partitions")


def with_rates(cluster: Cluster, rates: Rates) -> Cluster:
    """Return the cluster with these inbound rates. A partition without a rate here keeps its own rate, or
    gets 0 if that is unknown. Without any rates, for want of events, unknown rates stay unknown.
    """
    if not rates:
        return cluster
    partitions = []
    for each in cluster.partitions:
        rate = rates.get((each.topic, each.partition), each.rate)
        partitions.append(msgspec.structs.replace(each, bytes_in_rate=rate))
    return msgspec.structs.replace(cluster, partitions=partitions)


def write(plan: Plan, options: Options) -> None:
    """Write `plan.json` to the folder, and a summary to standard output."""
    make_folder(options.out)
    text = msgspec.json.format(msgspec.json.encode(plan), indent=2).decode() + "\n"
    if "://" in options.out:
        spark = make_session(options.master, settings=dict(options.settings))
        FilePath(spark, f"{options.out}/plan.json").write_text(text)
    else:
        file = Path(options.out, "plan.json")
        try:
            file.write_text(text, encoding="utf-8")
        except OSError as error:
            raise PipelineError(f"cannot write {file}: {error.strerror}") from error
    expected, by_formula = (
        "for ever" if each is None else f"{each:,.0f} s"
        for each in (plan.expected_seconds, plan.move_seconds)
    )
    print(
        f"--throttle {plan.throttle} moves {plan.bytes_to_move:,} bytes and takes {expected} "
        f"({by_formula} by KIP-73's formula)"
    )
    if not plan.feasible:
        print(f"Not feasible: {plan.reason}")
