"""What the pipeline's jobs cost."""
