"""Models that are never written out: bounds by contracting factor by factor."""
