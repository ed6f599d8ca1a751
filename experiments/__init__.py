"""Experiments with Debate RL: each folder has a page, a runner and its tests. Nothing imports them."""
