"""Debates of the steps of a run: held, graded, rewarded and recorded."""
