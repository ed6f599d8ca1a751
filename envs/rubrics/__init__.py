"""Replies scored by a rubric: what a verifier model is asked, what it states, and the file that keeps it.

A verdict is the opinion of a model. It is not ground truth, and nothing here calls it right or wrong.
"""
