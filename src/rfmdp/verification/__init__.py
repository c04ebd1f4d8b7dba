"""Verification: results checked again, by means that share nothing with the solver."""
