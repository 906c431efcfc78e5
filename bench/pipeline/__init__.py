"""Measures what the pipeline's jobs cost."""
