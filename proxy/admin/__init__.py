"""Requests that the proxy answers in the brokers' place."""
