"""Recorded transitions: tables of a log become counts for the rows of a model."""
