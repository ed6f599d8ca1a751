"""Problems and truth: data sets, synthetic families, answer extraction and grading.

Importing this loads no heavy package: sympy and math-verify live in the grader's worker processes, `datasets`
and `pyarrow` are imported when a data set is read.
"""

from envs.extraction import extract
from envs.grading import Grader, grade, same_answer
from envs.types import Extraction, Grade, GradeStatus

__all__ = [
    "Extraction",
    "Grade",
    "GradeStatus",
    "Grader",
    "extract",
    "grade",
    "same_answer",
]
