"""The plain screen: debates as lines of text or JSON, for a terminal, a pipe or a file."""
