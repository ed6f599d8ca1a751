"""What a run needs before it begins: memory, time, tokens and disk."""
