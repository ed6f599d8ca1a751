"""The answer in a text: its place in each mode."""
