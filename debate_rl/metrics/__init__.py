"""Metrics of answers, debates, judging and held-out problems, and their confidence intervals."""
