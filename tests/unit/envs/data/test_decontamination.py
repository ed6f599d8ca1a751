import pytest
from hypothesis import given
from hypothesis import strategies as st

from debate.types import Problem
from envs.data.decontamination import Overlap, overlap_line, overlaps, runs, without_overlaps


def problems(prefix, *questions):
    return [Problem(f"{prefix}{n}", question) for n, question in enumerate(questions)]


TWENTY = " ".join(f"w{n}" for n in range(20))  # 8 runs of 13 words


def test_the_same_question_however_it_is_set():
    train = problems("t", "Another one.", "What is $1 + 1$?", "what is 1+1?")
    held_out = problems("h", "What is 1+1?", "What is 1-1?", "WHAT IS\n$1+1$?")
    assert overlaps(train, held_out) == (Overlap("h0", "t1", "exact", 1.0), Overlap("h2", "t1", "exact", 1.0))


def test_the_share_is_of_the_held_out_questions_runs():
    def share(asked, *trained):
        found = overlaps(problems("t", *trained), problems("h", asked))
        return [(one.train, one.kind, one.share) for one in found]

    twelve, thirteen, fifteen = (" ".join(TWENTY.split()[:n]) for n in (12, 13, 15))
    assert share(TWENTY, twelve) == []
    assert share(TWENTY, thirteen) == [("t0", "ngram", 1 / 8)]
    assert share(thirteen, TWENTY) == [("t0", "ngram", 1.0)]  # the other way round: one run of one
    # w0..w14 hold runs 0, 1, 2 and w7..w19 run 7: together 4 of 8; t0 has three of them
    assert share(TWENTY, fifteen, " ".join(TWENTY.split()[7:])) == [("t0", "ngram", 4 / 8)]
    assert share(TWENTY, ", ".join(TWENTY.upper().split())) == [("t0", "ngram", 1.0)]  # case and commas
    again = f"{TWENTY} {TWENTY}"  # 40 words, 28 places, 20 distinct runs: those of the cycle of 20
    assert (len(runs(again)), share(again, TWENTY)) == (20, [("t0", "ngram", 8 / 20)])


def test_the_first_of_equals_is_named_and_the_order_is_that_of_the_held_out():
    other = " ".join(f"v{n}" for n in range(13))
    found = overlaps(problems("t", TWENTY + " x", TWENTY + " y"), problems("h", other, TWENTY + " z", TWENTY))
    assert [(overlap.held_out, overlap.train) for overlap in found] == [("h1", "t0"), ("h2", "t0")]
    assert found[0].share == 8 / 9


def test_nothing_on_either_side():
    assert overlaps([], problems("h", TWENTY)) == overlaps(problems("t", TWENTY), []) == ()
    with pytest.raises(ValueError, match="words: needs at least 1, got 0"):
        overlaps([], [], words=0)


def test_training_is_read_once_and_may_be_a_stream():
    stream = (problem for problem in problems("t", "a", TWENTY))
    assert overlaps(stream, problems("h", TWENTY))[0].train == "t1"
    assert list(stream) == []


def test_what_is_told():
    many = [Overlap(f"h{n}", "t", "ngram", n / 10) for n in range(1, 8)]
    counts = "7 of 9 held-out problems overlap with training (0 the same, 7 by 13-word runs)"
    assert overlap_line(many, 9, shown=2) == f"{counts}: h7 (0.70), h6 (0.60), ..."


TEXTS = st.lists(st.text(max_size=30), max_size=5)


@given(TEXTS, TEXTS)
def test_laws(train, held_out):
    seen, asked = problems("t", *train), problems("h", *held_out)
    found = overlaps(seen, asked, words=2)
    assert all(0 < overlap.share <= 1 for overlap in found)
    assert {o.held_out for o in overlaps(asked, asked, words=2) if o.kind == "exact"} == {p.id for p in asked}
    assert found == overlaps([*seen, *seen], asked, words=2)


def test_a_question_with_other_options_is_another():
    stem = "Which statement is true?"
    held_out = [Problem("h", stem, "A", kind="choice", choices=("a cat", "a dog"))]
    other = Problem("other", stem, "A", kind="choice", choices=("a cow", "a dog"))
    same = Problem("same", stem, "B", kind="choice", choices=("A  dog", "a cat"))
    bare = Problem("bare", stem, "a cat", kind="text")
    assert overlaps([other], held_out) == ()
    assert overlaps([other, same], held_out) == (Overlap("h", "same", "exact", 1.0),)
    assert overlaps([bare], held_out) == (Overlap("h", "bare", "exact", 1.0),)
    assert overlaps([other], [bare]) == (Overlap("bare", "other", "exact", 1.0),)
    kept, left_out = without_overlaps([other, same, bare], held_out, "exact")
    assert ([problem.id for problem in kept], left_out["exact"]) == (["other"], 2)
