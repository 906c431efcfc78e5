"""Record batches: where they end, and who wrote them."""
