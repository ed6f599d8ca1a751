"""Problems of your own: PYTHONPATH=. debate train RECIPE env.kind=skeleton:Skeleton"""

from random import Random

from debate import Problem
from envs import Grade, GradeStatus


class Skeleton:
    """What is twice a number? Odd numbers are for training, even ones for tests."""

    name = "skeleton"

    def problems(self, *, split, limit=None, seed=None):
        """Return the problems of a split. Splits share no problem, and one seed gives the same problems."""
        numbers = list(range(1, 100, 2) if split == "train" else range(0, 100, 2))
        Random(seed).shuffle(numbers)
        return tuple(
            Problem(f"skeleton/{n}", f"What is twice {n}?", answer=str(2 * n), kind="number")
            for n in numbers[:limit]
        )

    def grade(self, problem, answer):
        r"""Grade an answer: the inside of the last \boxed{}, or None. It never raises."""
        if answer is None:
            return Grade(GradeStatus.MISSING, self.name)
        right = answer.strip() == problem.answer
        return Grade(GradeStatus.CORRECT if right else GradeStatus.WRONG, self.name, answer)
