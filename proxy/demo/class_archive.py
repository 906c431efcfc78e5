"""An archive of Kafka's classes, made by a trial run: with it, brokers and tools start in half the time.

This is the JVM's own mechanism (JEP 350); a JVM that an archive does not suit starts without it.
"""

import sys
import tempfile
from pathlib import Path

from proxy.demo.embedded_kafka import EmbeddedKafka
from proxy.demo.kafka_distribution import KafkaDistribution
from proxy.errors import QuotaProxyError


def make(distribution: KafkaDistribution) -> None:
    """Makes the archive of this version for this Java. To go without is no error."""
    archive = distribution.class_archive
    print(f"Apache Kafka {distribution.version}: a trial run, for quicker starts, once", file=sys.stderr)
    try:
        with tempfile.TemporaryDirectory(dir=distribution.folder.parent, prefix="unfinished-") as folder:
            unfinished = Path(folder) / archive.name
            flags = [f"-XX:ArchiveClassesAtExit={unfinished}"]
            with EmbeddedKafka(version=distribution.version, jvm_flags=flags) as kafka:
                kafka.stop(1)
            unfinished.rename(archive)
    except (QuotaProxyError, OSError) as error:
        print(f"Apache Kafka {distribution.version} will start slower: {error}", file=sys.stderr)
