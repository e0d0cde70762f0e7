"""What several bases are made of: lattices and boxes, multisets, best fits, certificates."""
