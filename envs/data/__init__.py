"""Data sets and files of your own: where their rows are, and how a row becomes a problem."""
