"""The published solving table again: its runs, its lines, its figure."""
