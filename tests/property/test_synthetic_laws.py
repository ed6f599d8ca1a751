import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envs import load_problems
from envs.families import FAMILIES, pair_sum, products, sorting, stories, words
from envs.grading.extraction import last_box

seeds = st.integers(0, 10**6)
families = st.sampled_from(sorted(FAMILIES))


def canonical(family, problem):
    if family == "words":
        return words.read_story(problem.question)
    if family == "stories":
        return stories.blank(problem.question)
    if family == "products":
        return tuple(sorted(products.read_question(problem.question)))
    if family == "sorting":
        return tuple(sorted(sorting.read_question(problem.question)))
    target, numbers = pair_sum.read_question(problem.question)
    return target, tuple(sorted(numbers))


@settings(max_examples=20, deadline=None)
@given(families, seeds, seeds)
def test_splits_are_disjoint_whatever_the_seeds(family, one, other):
    train = load_problems(family, split="train", limit=60, seed=one)
    test = load_problems(family, split="test", limit=60, seed=other)
    validation = load_problems(family, split="validation", limit=30, seed=one)
    forms = [{canonical(family, p) for p in part} for part in (train, test, validation)]
    assert not forms[0] & forms[1]
    assert not forms[0] & forms[2]
    assert not forms[1] & forms[2]


@settings(max_examples=20, deadline=None)
@given(families, seeds, st.integers(1, 40))
def test_the_same_seed_gives_the_same_problems_and_a_limit_is_a_prefix(family, seed, limit):
    longer = load_problems(family, split="train", limit=40, seed=seed)
    assert load_problems(family, split="train", limit=limit, seed=seed) == longer[:limit]
    assert len({p.id for p in longer}) == 40


@settings(max_examples=20, deadline=None)
@given(families, seeds)
def test_the_gold_answer_is_right_and_written_solutions_are_what_they_say(family, seed):
    environment, rng = FAMILIES[family], random.Random(seed)
    for problem in load_problems(family, split="train", limit=9, seed=seed):
        assert environment.grade(problem, problem.answer).status == "correct"
        for right in (0.0, 1.0):
            solution = environment.write_solution(
                problem, environment.attempt(problem, rng, right=right, lure=0.4)
            )
            box = last_box(solution)
            assert box is not None
            status = environment.grade(problem, box.of(solution)).status
            assert status == "correct" or right < 1
            assert environment.write_check(problem, solution).endswith(
                "right." if status == "correct" else "wrong."
            )


@settings(max_examples=20, deadline=None)
@given(families, seeds)
def test_the_vocabulary_spells_every_text(family, seed):
    environment, rng = FAMILIES[family], random.Random(seed)
    for level in ("1", "2", "3"):
        pieces = environment.of_levels([level]).vocabulary()
        assert len(set(pieces)) == len(pieces)
        longest_first = re.compile("|".join(map(re.escape, sorted(pieces, key=len, reverse=True))))
        for problem in load_problems(family, split="train", limit=4, seed=seed, levels=[level]):
            solution = environment.write_solution(
                problem, environment.attempt(problem, rng, right=0.3, lure=0.4)
            )
            texts = [problem.question, solution, environment.write_check(problem, solution)]
            if family == "products":
                texts.append(environment.write_with_tool(problem))
            for text in texts:
                assert "".join(longest_first.findall(text)) == text


@given(st.text(max_size=80))
@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_grading_never_raises_on_an_answer(family, answer):
    question = {
        "pair_sum": "Target 19. Numbers 3 8 5 11 10 9.",
        "words": "Tom has 8 apples. Tom gets 4 more. How many apples?",
        "stories": "Tom has 8 cards. Tom finds 4 more. How many cards does Tom have now?",
        "products": "What is 34 * 29?",
        "sorting": "Sort 8 3 11.",
    }[family]
    problem = load_problems(family, split="train", limit=1, seed=0)[0]
    assert FAMILIES[family].grade(type(problem)("p", question), answer).status in ("correct", "wrong")
