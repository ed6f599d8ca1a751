"""Strategies: ways to one answer to a problem, within a budget, by a policy that is asked several times."""
