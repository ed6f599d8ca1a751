"""Rows in, new weights out: batches, log-probabilities, the optimizer step."""
