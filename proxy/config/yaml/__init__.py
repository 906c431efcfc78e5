"""YAML as typed values: reading it, and mistakes with their key, their line and what to write instead."""
