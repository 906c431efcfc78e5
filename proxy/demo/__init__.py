"""A real Apache Kafka on the loopback address, and the proxy in front of it, for the demo and the tests."""
