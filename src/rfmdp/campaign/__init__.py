"""Campaigns: many tasks by one runner, on all local cores or on a Dask cluster."""
