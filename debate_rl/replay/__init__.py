"""Reward or grade the stored debates of a run again, by other rules. Needs no GPU and loads no torch."""
