"""Intercepted requests, which the proxy answers in place of the brokers."""
