"""Long runs of the real proxy before a real Kafka: `python -m bench.soak`, or `make soak`."""
