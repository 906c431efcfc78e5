"""Long runs of the proxy in front of a real Kafka: `python -m bench.soak`, or `make soak`."""

from proxy.cli.libraries import import_kio

# Its processes start often, and need no hypothesis.
import_kio()
