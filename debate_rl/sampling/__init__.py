"""Load the problems of a run, and draw the problems of each step."""
