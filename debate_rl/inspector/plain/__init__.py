"""The plain screen: debates as lines of text or JSON, for a terminal, a pipe or a file."""

from debate_rl.inspector.plain.listing import print_figures, print_list, print_runs
from debate_rl.inspector.plain.printer import Printer, printer_for
from debate_rl.inspector.plain.searching import print_matches
from debate_rl.inspector.plain.showing import print_debate

__all__ = [
    "Printer",
    "print_debate",
    "print_figures",
    "print_list",
    "print_matches",
    "print_runs",
    "printer_for",
]
