"""What the inspector shows of a debate, as values that any screen can draw: no markup, no colours, no files.

Everything is read from a ``transcripts.Record`` and nothing is changed. A record that no debate can have, as
files from elsewhere may hold, is refused with the field and the value (``checked.check_record``).
"""

from debate_rl.inspector.views.adoption import AdoptionCell, AdoptionView, Copy, adoption_view
from debate_rl.inspector.views.checked import check_record, open_debate
from debate_rl.inspector.views.debate import DebateView, Piece, SummaryView, TurnView, debate_view, pieces_of
from debate_rl.inspector.views.graph import Arrow, RoundGraph, UnreadLine, vote_graphs
from debate_rl.inspector.views.parsing import (
    Excerpt,
    FailureView,
    FieldChange,
    TurnForensics,
    parse_forensics,
    reparsed,
)
from debate_rl.inspector.views.tokens import TokenPiece, TokenTotal, TokenView, token_view

__all__ = [
    "AdoptionCell",
    "AdoptionView",
    "Arrow",
    "Copy",
    "DebateView",
    "Excerpt",
    "FailureView",
    "FieldChange",
    "Piece",
    "RoundGraph",
    "SummaryView",
    "TokenPiece",
    "TokenTotal",
    "TokenView",
    "TurnForensics",
    "TurnView",
    "UnreadLine",
    "adoption_view",
    "check_record",
    "debate_view",
    "open_debate",
    "parse_forensics",
    "pieces_of",
    "reparsed",
    "token_view",
    "vote_graphs",
]
