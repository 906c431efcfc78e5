"""Prepares Apache Kafka for the demo and the tests: `python -m proxy.demo.prepare [VERSION ...]`"""

import sys
from collections.abc import Sequence

from proxy.demo import class_archive
from proxy.demo.kafka_distribution import DEFAULT_VERSION, ensure
from proxy.errors import QuotaProxyError


def main(versions: Sequence[str]) -> None:
    """Fetch these versions, or the demo's if there is none, and write the class data archive of each."""
    for version in versions or [DEFAULT_VERSION]:
        distribution = ensure(version)
        if not distribution.class_archive.exists():
            class_archive.make(distribution)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except QuotaProxyError as error:
        sys.exit(str(error))
