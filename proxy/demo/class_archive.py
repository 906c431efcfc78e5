"""An archive of Kafka's classes, made by a trial run: with it, brokers and tools start in half the time.

This is the JVM's own mechanism (JEP 350); a JVM that an archive does not suit starts without it.
"""

import sys

from proxy.demo.embedded_kafka import EmbeddedKafka
from proxy.demo.kafka_distribution import KafkaDistribution, lock
from proxy.errors import QuotaProxyError


def make(distribution: KafkaDistribution) -> None:
    """Makes the archive of this version for this Java. To go without is no error."""
    archive = distribution.class_archive
    unfinished = archive.with_suffix(".unfinished")
    with lock():
        if archive.exists():
            return
        print(f"Apache Kafka {distribution.version}: a trial run, for quicker starts, once", file=sys.stderr)
        try:
            flags = [f"-XX:ArchiveClassesAtExit={unfinished}"]
            with EmbeddedKafka(version=distribution.version, jvm_flags=flags) as kafka:
                kafka.stop(1)
            unfinished.rename(archive)
        except (QuotaProxyError, OSError) as error:
            print(f"Apache Kafka {distribution.version} will start slower: {error}", file=sys.stderr)
