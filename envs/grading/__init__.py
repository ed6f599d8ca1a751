"""Grading: find the answer in a reply, compare it by exact rules, then by math-verify in other processes."""
