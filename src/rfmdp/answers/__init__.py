"""Answers: a property asked of a model. Nesting, filters, thresholds that a value meets exactly."""
