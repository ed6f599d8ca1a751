"""Anything that can speak in a debate. Heavy ones are imported from their own modules only."""

from debate.policies.scripted import Answers, ScriptedPolicy, scripted_debaters

__all__ = ["Answers", "ScriptedPolicy", "scripted_debaters"]
