"""Where votes pay: one start, several signals to learn from, and what p_v and p_c say of them before."""
