"""A class data archive for Kafka (JEP 350): with it, brokers and tools start in half the time.

A trial run of a broker writes it. A JVM that the archive does not fit ignores it.
"""

import sys

from proxy.demo.embedded_kafka import EmbeddedKafka
from proxy.demo.kafka.jars import KafkaDistribution, lock
from proxy.errors import QuotaProxyError


def make(distribution: KafkaDistribution) -> None:
    """Run a broker once, which writes the archive of this Kafka for this Java.

    A failure costs only time, so it is reported on standard error and not raised.
    """
    archive = distribution.class_archive
    unfinished = archive.with_suffix(".unfinished")
    with lock():
        if archive.exists():
            return
        print(
            f"Apache Kafka {distribution.version}: running it once, so that later starts are faster",
            file=sys.stderr,
        )
        try:
            flags = [f"-XX:ArchiveClassesAtExit={unfinished}"]
            with EmbeddedKafka(version=distribution.version, jvm_flags=flags) as kafka:
                kafka.stop(1)
            unfinished.rename(archive)
        except (QuotaProxyError, OSError) as error:
            print(f"Apache Kafka {distribution.version} will start more slowly: {error}", file=sys.stderr)
