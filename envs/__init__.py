"""Problems and grading: data sets, synthetic families and answer extraction.

Importing this package loads no heavy package. sympy and math-verify run in the grader's worker processes, and
`datasets` and `pyarrow` are imported when a data set is read.
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
