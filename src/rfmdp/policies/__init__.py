"""Policies: what they decide and why, in words that people read."""
