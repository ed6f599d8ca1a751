"""Grading: find the answer in a reply, and compare it by exact rules or math-verify in other processes."""
