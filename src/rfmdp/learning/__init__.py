"""Learning: from counts to confidence sets, budgets, exploration and guaranteed policies."""
