"""Models in blocks: each takes steps by itself, and blocks exchange values."""
