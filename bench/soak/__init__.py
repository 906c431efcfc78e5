"""Long runs of the proxy in front of a real Kafka: `python -m bench.soak`, or `make soak`."""
