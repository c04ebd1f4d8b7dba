"""The published learning curves again: their runs, what a guarantee costs, their figures."""
