"""The code that runs in the box; it imports only the standard library and nothing else of this project."""
