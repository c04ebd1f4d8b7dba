"""The outer loop: from a specification on a model to certified bounds."""
