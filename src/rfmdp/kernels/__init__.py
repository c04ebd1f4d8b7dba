"""Compiled kernels: arrays in, arrays out, no classes, no exceptions, no allocation."""
