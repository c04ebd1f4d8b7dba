"""Many runs with records: the published tables and figures again."""
