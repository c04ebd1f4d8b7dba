"""Gymnasium environments as sources, their tables as models, our models as environments."""
