"""Update the weights from rows: batches, log-probabilities, and the optimizer step."""
