from skeleton import Skeleton

from envs import GradeStatus


def test_splits_share_no_problem_and_one_seed_gives_the_same_problems():
    env = Skeleton()
    train, test = (env.problems(split=split, seed=0) for split in ("train", "test"))
    assert not {problem.question for problem in train} & {problem.question for problem in test}
    assert env.problems(split="train", limit=5, seed=0) == train[:5]


def test_it_grades_right_wrong_and_missing_answers():
    env = Skeleton()
    for problem in env.problems(split="test", limit=20, seed=0):
        assert env.grade(problem, problem.answer).status == GradeStatus.CORRECT
        assert env.grade(problem, "no number").status == GradeStatus.WRONG
        assert env.grade(problem, None).status == GradeStatus.MISSING
