"""Where votes pay: several signals to learn from at each start, and what p_v, p_c and p_m predict."""
