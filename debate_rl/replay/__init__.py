"""The debates of a run paid again under another reward scheme; needs no GPU and loads no torch."""

from debate_rl.replay.comparing import DebateChange, compare_steps
from debate_rl.replay.scheme import Scheme, pay_step, replay_step, scheme_of
from debate_rl.replay.summary import Summary

__all__ = [
    "DebateChange",
    "Scheme",
    "Summary",
    "compare_steps",
    "pay_step",
    "replay_step",
    "scheme_of",
]
