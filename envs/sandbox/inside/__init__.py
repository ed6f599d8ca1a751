"""What runs in the box: the standard library alone, and nothing of the rest of this project."""
