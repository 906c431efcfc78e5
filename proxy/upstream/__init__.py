"""The proxy as a Kafka client: metadata, topic names, partition counts."""
