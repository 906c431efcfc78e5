"""`python -m bench.training`: the load by which `make profiled` optimizes the compiled rings.

The proxy of the current folder runs with nothing enforced, with the byte quotas of 1,000 clients, and with
all kinds of quotas and usage events. Each gets small and large Produce and Fetch requests, of one partition
and of 24. Rings that were compiled with QUOTA_PROXY_BUILD=instrumented count meanwhile how often each of
their branches is taken, and write the counts when the proxy ends.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path
from typing import Final

import yaml

from bench.instructions import ENFORCED, TENANTS, Case, setting
from bench.load.cold import NODE_ID
from bench.load.drive import Load, drive
from bench.peers import quota_proxy
from bench.peers.peer import HOST, free_ports, launch
from bench.rounds import fake_broker

CASES: Final = (
    Case("produce_1", "produce", 120, 1, requests=10_000),
    Case("fetch_1", "fetch", 120, 1, requests=10_000),
    Case("produce_24", "produce", 900, 24, requests=5_000),
    Case("fetch_24", "fetch", 900, 24, requests=5_000),
    Case("produce_900kb", "produce", 900_000, 1, requests=200),
    Case("fetch_1mb", "fetch", 1_000_000, 1, requests=200),
)
FLOWS: Final = ((8, 1), (4, 5))
"""The numbers of connections, and of requests in flight on each."""


def loads(requests: float) -> list[Load]:
    """Return the load; `requests` is a factor of its requests."""
    return [
        Load(
            kind=case.kind,
            size=case.size,
            partitions=case.partitions,
            connections=connections,
            depth=depth,
            rate=0.0,
            requests=max(int(case.requests * requests), connections * depth),
            client_id=quota_proxy.TENANT,
            client_ids=TENANTS,
        )
        for case in CASES
        for connections, depth in FLOWS
    ]


def train(enforced: str, checkout: Path, folder: Path, requests: float) -> int:
    """Run the proxy of a checkout under the load, and end it; return how many requests it has got. Raises
    StartFailed or LoadError, and SystemExit if the proxy did not end by itself, and so wrote no counts.
    """
    bootstrap, admin, port = free_ports(3)
    with fake_broker(folder, join=False) as broker:
        where = setting(enforced, broker, folder, tls=False)
        document = quota_proxy.configuration(
            where, bootstrap=bootstrap, admin=admin, broker_port_base=port - NODE_ID
        )
        file = folder / f"{enforced}.yaml"
        file.write_text(yaml.safe_dump(document, sort_keys=False))
        command = [sys.executable, "-P", "-m", "proxy", "run", "--config", str(file)]
        environment = {**os.environ, "PYTHONPATH": str(checkout)}
        ready = quota_proxy.readiness(admin)
        sent = 0
        with launch("proxy", command, where, port, environment=environment, ready=ready) as running:
            for load in loads(requests):
                drive(f"{HOST}:{port}", load, None)
                sent += load.requests
        if running.process is None or running.process.returncode != 0:
            sys.exit(f"bench.training: the proxy did not end by itself:\n{running.last_words()}")
        return sent


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m bench.training", description=__doc__)
    parser.add_argument(
        "--requests", type=float, default=1.0, help="factor of the number of requests (default: %(default)s)"
    )
    options = parser.parse_args()
    for enforced in ENFORCED:
        with tempfile.TemporaryDirectory(prefix="training-") as name:
            sent = train(enforced, Path.cwd(), Path(name), options.requests)
            print(f"{sent} requests, enforced: {enforced}")


if __name__ == "__main__":
    main()
