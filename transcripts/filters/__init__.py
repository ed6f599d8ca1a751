"""The filter language, the same on the command line, in the terminal, in a browser address and in Python."""
