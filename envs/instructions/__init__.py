"""Instruction following: the constraints of a problem, and which of them a response meets.

A problem of kind "instructions" has its constraints as its answer: a JSON object of IFEval's two fields,
``instruction_id_list`` and ``kwargs`` [Zhou et al. 2023, arXiv 2311.07911]. They are checked when they are
read, so that a response alone decides what it is worth.
"""

from envs.instructions.constraints import ConstraintError, constraints_of, follows

__all__ = ["ConstraintError", "constraints_of", "follows"]
