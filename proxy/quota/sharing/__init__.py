"""Divides limits among processes. Each computes its share from the reports that all append to one log."""
