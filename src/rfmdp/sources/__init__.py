"""Sources: where samples come from, a simulated model, a Gymnasium environment or recorded data."""
