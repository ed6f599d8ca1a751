"""The plain screen: debates as lines of text or JSON, for a terminal, a pipe or a file."""

from inspector.plain.listing import print_figures, print_list, print_runs
from inspector.plain.printer import Printer, printer_for
from inspector.plain.searching import print_matches
from inspector.plain.showing import print_debate

__all__ = [
    "Printer",
    "print_debate",
    "print_figures",
    "print_list",
    "print_matches",
    "print_runs",
    "printer_for",
]
