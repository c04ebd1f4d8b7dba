"""What an rf-MDP is, and the ways to make one."""
