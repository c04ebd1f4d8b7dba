"""Sources: where samples come from, the simulator of a known model or recorded transitions."""
