"""Marginal uncertainty sets: data checked once, and what other layers may ask of them."""
