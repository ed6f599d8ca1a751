"""Grading: find the answer in a reply, and compare it by exact rules or by math-verify in killable processes."""
