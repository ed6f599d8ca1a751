"""Where votes pay: one start, several signals to learn from, and what p_v, p_c and p_m say of them before."""
