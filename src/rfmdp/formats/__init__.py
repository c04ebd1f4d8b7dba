"""Formats: saved models and results, explicit files of PRISM and Storm, UMB, stormpy, matrices."""
