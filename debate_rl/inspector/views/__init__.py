"""What the inspector shows of a debate, as values that any screen can draw: no markup, no colours, no files.

Everything is read from a ``transcripts.Record`` and nothing is changed. A record that no debate can have, as
files from elsewhere may hold, is refused with the field and the value (``checked.check_record``).
"""

from debate_rl.inspector.views.debate import DebateView, Piece, TurnView, adoption_view, debate_view
from debate_rl.inspector.views.parsing import (
    FailureView,
    FieldChange,
    TurnForensics,
    parse_forensics,
    reparsed,
)
from debate_rl.inspector.views.tokens import TokenPiece, token_view
from debate_rl.inspector.views.votes import Arrow, RoundGraph, vote_graphs

__all__ = [
    "Arrow",
    "DebateView",
    "FailureView",
    "FieldChange",
    "Piece",
    "RoundGraph",
    "TokenPiece",
    "TurnForensics",
    "TurnView",
    "adoption_view",
    "debate_view",
    "parse_forensics",
    "reparsed",
    "token_view",
    "vote_graphs",
]
