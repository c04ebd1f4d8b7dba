"""Robust factored Markov decision processes: solve and learn, with certified bounds."""

__version__ = "0.1.0"
