"""Instruction following: check which constraints of a problem a response meets.

The answer of a problem of kind "instructions" is its constraints: a JSON object with IFEval's two fields,
``instruction_id_list`` and ``kwargs`` [Zhou et al. 2023, arXiv 2311.07911]. The constraints are validated
when they are parsed, so afterwards the grade depends only on the response.
"""

from envs.instructions.constraints import ConstraintError, constraints_of, follows

__all__ = ["ConstraintError", "constraints_of", "follows"]
