import random

import pytest

from debate import types as nouns
from envs import DataError, load_problems
from envs.families import FAMILIES, pair_sum, products, sorting, words
from envs.families.synthetic import split_of

PAIR_SUM, WORDS, PRODUCTS, SORTING = map(FAMILIES.__getitem__, ("pair_sum", "words", "products", "sorting"))
PAIR = nouns.Problem("p", "Target 19. Numbers 3 8 5 11 10 9.")
PRODUCT = nouns.Problem("m", "What is 347 * 29?")
LIST = nouns.Problem("s", "Sort 8 3 11 5.")
STORY = nouns.Problem("w", "Tom has 8 apples. Tom gets 4 more. Tom loses 3. How many apples?")
PAIRS_WRONG = ["8 10", "12 7", "8 11 3", "19", "8", "", "8 11 or 3 9"]
PRODUCTS_WRONG = ["10064", "347 * 29", "10063 or 10064", "-10063", ""]


@pytest.mark.parametrize(
    ("family", "problem", "right", "wrong"),
    [
        (*(PAIR_SUM, PAIR), [" 11 8", "8 11", "\\{8, 11\\}", "(8,11)", "8 + 11", "10 9"], PAIRS_WRONG),
        (*(WORDS, STORY), ["9", " 9 ", "9 apples", "9.0"], ["15", "", "8+4-3", "9 or 15"]),
        (*(PRODUCTS, PRODUCT), ["10063", " 10063.", "10063.0"], PRODUCTS_WRONG),
        (*(SORTING, LIST), [" 3 5 8 11", "3, 5, 8, 11."], ["8 3 11 5", "3 5 8", "3 5 8 11 11", "35811", ""]),
    ],
)
def test_truth(family, problem, right, wrong):
    assert {family.grade(problem, answer).status.value for answer in right} == {"correct"}
    assert {family.grade(problem, answer).status.value for answer in [*wrong, "1 " * 5000]} == {"wrong"}
    assert family.grade(problem, None).status == "missing"


@pytest.mark.parametrize(
    ("family", "problem", "solution", "check", "lured"),
    [
        (PAIR_SUM, PAIR, r" 11 + 8 = 19. \boxed{ 11 8}", " 11 + 8 = 19 right.", " 11 + 8 = 19 wrong."),
        (PAIR_SUM, PAIR, r" 3 + 9 = 19. \boxed{ 3 9}", " 3 + 9 = 12 wrong.", " 3 + 9 = 12 wrong."),
        (PAIR_SUM, PAIR, r" 8 + 3 = 11. \boxed{ 8 3}", " 8 + 3 = 11 wrong.", " 8 + 3 = 11 right."),
        (WORDS, STORY, r" \boxed{ 15}", " 15 = 9 wrong.", " 15 = 15 right."),
        (WORDS, STORY, r" \boxed{ 9}", " 9 = 9 right.", " 9 = 15 wrong."),
        (PRODUCTS, PRODUCT, r" \boxed{10063}", " 10063 = 10063 right.", " 10063 = 3817 wrong."),
        (PRODUCTS, PRODUCT, r" \boxed{3817}", " 3817 = 10063 wrong.", " 3817 = 3817 right."),
        (SORTING, LIST, r" \boxed{ 3 5 8 11}", " 3 5 8 11 right.", " 3 5 8 11 right."),
        (SORTING, LIST, r" \boxed{ 3 8 5 11}", " 3 8 5 11 wrong.", " 3 8 5 11 right."),
        (SORTING, LIST, r" \boxed{ 3 8 5 12}", " 3 8 5 12 wrong.", " 3 8 5 12 wrong."),
        *((family, None, "nothing", " none wrong.", " none wrong.") for family in FAMILIES.values()),
    ],
)
def test_a_check_says_what_holds_and_a_lured_one_errs_as_planted(family, problem, solution, check, lured):
    assert family.write_check(problem, solution) == check
    assert family.write_check(problem, solution, lured=True) == lured


@pytest.mark.parametrize(
    ("family", "problem", "attempt", "text"),
    [
        (PAIR_SUM, PAIR, (11, 8), r" 11 + 8 = 19. \boxed{ 11 8}"),
        (WORDS, STORY, (8, 4, 3), r" 8 + 4 = 12. 12 + 3 = 15. \boxed{ 15}"),
        (PRODUCTS, nouns.Problem("m", "What is 12 * 40?"), (480,), r" 12 * 40 = 480. \boxed{480}"),
        (SORTING, LIST, (3, 5, 8, 11), r" \boxed{ 3 5 8 11}"),
    ],
)
def test_a_solution_is_the_text_of_an_attempt(family, problem, attempt, text):
    assert family.write_solution(problem, attempt) == text
    assert PAIR_SUM.write_lie(PAIR, (3, 9)) == r" 3 + 9 = 19. \boxed{ 3 9}"
    assert SORTING.answer_key(LIST, "3, 5, 8") == "3 5 8"


def drawn(family, level):
    """Return problems of a level."""
    problems = load_problems(family, split="train", limit=60, seed=3, levels=[level])
    assert {problem.level for problem in problems} == {level}
    return problems


@pytest.mark.parametrize(("level", "count", "largest"), [("1", 6, 12), ("2", 8, 18), ("3", 10, 24)])
def test_pair_sum_levels(level, count, largest):
    for problem in drawn("pair_sum", level):
        target, numbers = pair_sum.read_question(problem.question)
        assert len(set(numbers)) == count
        assert max(numbers) <= largest
        assert sum(a + b == target for i, a in enumerate(numbers) for b in numbers[:i]) == 1


@pytest.mark.parametrize("level", ["1", "2", "3"])
def test_words_levels(level):
    for problem in drawn("words", level):
        start, *changes = words.read_story(problem.question)
        assert (len(changes), 2 <= start <= 12) == (int(level), True)
        assert all(1 <= abs(change) <= 6 for change in changes)
        assert 0 <= int(str(problem.answer)) <= 30


@pytest.mark.parametrize(("level", "digits"), [("1", [2, 2]), ("2", [2, 3]), ("3", [3, 3])])
def test_products_levels(level, digits):
    for problem in drawn("products", level):
        factors = products.read_question(problem.question)
        assert sorted(len(str(factor)) for factor in factors) == digits
        assert problem.answer == str(factors[0] * factors[1])


@pytest.mark.parametrize(("level", "count"), [("1", 3), ("2", 6), ("3", 9)])
def test_sorting_levels(level, count):
    for problem in drawn("sorting", level):
        numbers = sorting.read_question(problem.question)
        assert len(set(numbers)) == count
        assert 1 <= min(numbers) < max(numbers) <= 30
        assert [*numbers] != sorted(numbers)
        assert problem.answer == " ".join(map(str, sorted(numbers)))


def test_attempts_are_right_or_lured_or_wrong():
    rng = random.Random(0)
    problem = load_problems("pair_sum", split="train", limit=1, seed=0)[0]
    right = {tuple(sorted(PAIR_SUM.attempt(problem, rng))) for _ in range(20)}
    assert right == {tuple(map(int, str(problem.answer).split()))}
    assert {PAIR_SUM.attempt(PAIR, rng, right=0, lure=1) for _ in range(20)} == {(8, 3)}
    assert len({tuple(sorted(PAIR_SUM.attempt(PAIR, rng, right=0))) for _ in range(300)}) == 15
    assert WORDS.attempt(STORY, rng, right=0, lure=1) == (8, 4, 3)
    assert WORDS.attempt(STORY, rng) == (8, 4, -3)
    assert {WORDS.attempt(STORY, rng, right=0) for _ in range(50)} == {(8, -4, -3), (8, 4, 3)}
    assert PRODUCTS.attempt(PRODUCT, rng) == (6940, 3123)  # 347 * 20, 347 * 9
    assert PRODUCTS.attempt(PRODUCT, rng, right=0, lure=1) == (694, 3123)
    for _ in range(200):
        wrong = PRODUCTS.attempt(PRODUCT, rng, right=0)
        [(got, true)] = [pair for pair in zip(wrong, (6940, 3123), strict=True) if pair[0] != pair[1]]
        assert sum(a != b for a, b in zip(str(got), str(true), strict=True)) == 1
    assert SORTING.attempt(LIST, rng) == (3, 5, 8, 11)
    others = {SORTING.attempt(LIST, rng, right=0) for _ in range(100)}
    assert others == {(5, 3, 8, 11), (3, 8, 5, 11), (3, 5, 11, 8)}
    lures = [SORTING.attempt(LIST, rng, right=0, lure=1) for _ in range(2000)]
    assert all(sorted(order) == [3, 5, 8, 11] for order in lures)
    assert {order[0] for order in lures} == {3, 5, 8}  # the three smallest of four
    assert abs(lures.count((3, 5, 8, 11)) / 2000 - 1 / 18) < 0.02  # 1/3 * 1/3 * 1/2


@pytest.mark.parametrize("family", FAMILIES)
def test_door_refuses_what_a_family_has_not(family):
    wrong = [{"limit": None}, {"limit": 5, "levels": [9]}, {"limit": 5, "split": "dev"}, {"path": "x"}]
    for options in wrong:
        with pytest.raises(DataError, match=r"limit|levels|split|path"):
            load_problems(family, **options)
    with pytest.raises(DataError, match=rf"^env\.limit: {family}"):
        FAMILIES[family].problems(split="train")


def test_a_family_that_runs_out_says_so():
    with pytest.raises(DataError, match="has only about"):
        load_problems("words", split="validation", limit=5000, levels=[1])


def test_split_shares():
    shares = [split_of(str(i)) for i in range(5000)]
    assert abs(shares.count("test") / 5000 - 0.2) < 0.02
    assert abs(shares.count("validation") / 5000 - 0.1) < 0.02
