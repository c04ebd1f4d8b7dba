"""Reports: tables and plots of results."""
