"""Strategies: ways to find one answer to a problem by several requests to a policy, within a budget."""
