"""Apache Kafka for the demo and the tests: its jars and tools, its properties, and the Java that runs it."""
