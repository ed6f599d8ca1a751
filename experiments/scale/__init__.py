"""How many GPUs help, and what limits a step."""
