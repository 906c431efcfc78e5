"""The Spark session, its workers, and its failures."""
