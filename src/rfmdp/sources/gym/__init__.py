"""Gymnasium environments as sources, and their tables as models."""
