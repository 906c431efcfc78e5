"""What the proxy's usage events come to: usage, bills, quotas, plans and reports, on Apache Spark."""
