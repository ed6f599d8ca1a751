"""Blind votes of a judge on the rollouts of any model: files of other tools, ballots, and figures."""
