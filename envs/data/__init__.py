"""Data sets and your own files: find their rows and turn each row into a problem."""
