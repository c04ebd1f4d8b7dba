"""Independent tools that tests compare with."""
