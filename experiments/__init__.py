"""The experiments of the paper: its tables and figures again, by the library's public runner."""
