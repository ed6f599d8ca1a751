"""Policies without a model, which reply from a script or a function.

Engines are in ``debate_rl.inference``.
"""

from debate.policies.scripted import Answers, ScriptedPolicy, scripted_debaters

__all__ = ["Answers", "ScriptedPolicy", "scripted_debaters"]
