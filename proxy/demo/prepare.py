"""Prepares Apache Kafka for the demo and the tests: `python -m proxy.demo.prepare [--jars] [VERSION ...]`"""

import sys
from collections.abc import Sequence
from typing import Final

from proxy.demo.kafka.jars import DEFAULT_VERSION, ensure
from proxy.demo.kafka.maven import Jar
from proxy.errors import QuotaProxyError

JARS: Final = "--jars"


def main(arguments: Sequence[str]) -> None:
    """Fetch these versions, or the demo's if there is none, and write the class data archive of each.

    With --jars, write no archive, and print a line for each jar. This needs only the packages of
    requirements/fetch.txt.
    """
    versions = [argument for argument in arguments if argument != JARS] or [DEFAULT_VERSION]
    if JARS in arguments:
        for version in versions:
            ensure(version, _print)
        return
    from proxy.demo import class_archive

    for version in versions:
        distribution = ensure(version)
        if not distribution.class_archive.exists():
            class_archive.make(distribution)


def _print(jar: Jar) -> None:
    print(f"fetched {jar.file_name}", flush=True)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except QuotaProxyError as error:
        sys.exit(str(error))
