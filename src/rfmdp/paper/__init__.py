"""The paper: its seven domains, its published tables, and how to make them again."""
