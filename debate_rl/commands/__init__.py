"""The ``debate`` command line, which connects all packages. ``main`` has the table of commands.

Each command is a module that is loaded when the command is called. torch, the slow parts of scipy, the
browser and the terminal application are imported only where needed.
"""
