"""Run debates in which agents answer, review and judge each other's anonymous work.

One policy plays all agents.

The names below are the public API. Importing this package does not load a model library.
"""

from debate.config import DebateConfig
from debate.hold import hold_debate
from debate.hold_many import run_debates
from debate.parsing import parse_turn
from debate.personas import Persona
from debate.types import Completion, Debate, Message, Policy, Problem, SampleRequest, Turn, Vote

__all__ = [
    "Completion",
    "Debate",
    "DebateConfig",
    "Message",
    "Persona",
    "Policy",
    "Problem",
    "SampleRequest",
    "Turn",
    "Vote",
    "hold_debate",
    "parse_turn",
    "run_debates",
]
