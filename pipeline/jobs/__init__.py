"""The jobs: each reads, transforms and writes."""
