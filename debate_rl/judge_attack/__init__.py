"""Attacks on the judge: fixed pairs of a right and a wrong solution, plain and changed by persuaders."""
