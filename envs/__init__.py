"""Problems and truth: data sets, synthetic families, answer extraction and grading.

Importing this loads no heavy package: sympy and math-verify live in the grader's worker processes, `datasets`
and `pyarrow` are imported when a data set is read.
"""

from envs.data.loading import load_problems
from envs.errors import DataError, EnvironmentSpecError
from envs.grading.extraction import extract
from envs.grading.grader import Grader, grade, same_answer
from envs.registry import Environment, load_environment
from envs.types import Extraction, Grade, GradeStatus

__all__ = [
    "DataError",
    "Environment",
    "EnvironmentSpecError",
    "Extraction",
    "Grade",
    "GradeStatus",
    "Grader",
    "extract",
    "grade",
    "load_environment",
    "load_problems",
    "same_answer",
]
