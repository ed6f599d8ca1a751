"""Data sets and files of one's own: where their rows are, and how a row becomes a problem."""
