"""SASL logins, watched as they pass."""
