"""Computes usage, bills, quotas, plans and reports from the proxy's usage events, on Apache Spark."""
