"""Conditioning events, the weights of their biases, covers, and what is proved of them."""
