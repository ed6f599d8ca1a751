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
    twelve, thirteen = (" ".join(TWENTY.split()[:n]) for n in (12, 13))
    assert overlaps(problems("t", twelve), problems("h", TWENTY)) == ()
    assert overlaps(problems("t", thirteen), problems("h", TWENTY)) == (Overlap("h0", "t0", "ngram", 1 / 8),)
    # w0..w14 hold runs 0, 1, 2 and w7..w19 run 7: together 4 of 8; t0 has three of them
    first, last = " ".join(TWENTY.split()[:15]), " ".join(TWENTY.split()[7:])
    found = overlaps(problems("t", first, last), problems("h", TWENTY))
    assert found == (Overlap("h0", "t0", "ngram", 4 / 8),)
    # the other way round: one run of one
    assert overlaps(problems("t", TWENTY), problems("h", thirteen)) == (Overlap("h0", "t0", "ngram", 1.0),)


def test_punctuation_and_case_do_not_hide_a_run():
    loud = ", ".join(TWENTY.upper().split())
    assert overlaps(problems("t", loud), problems("h", TWENTY))[0].share == 1.0


def test_a_run_that_stands_twice_counts_once():
    again = f"{TWENTY} {TWENTY}"  # 40 words, 28 places, 20 distinct runs: those of the cycle of 20
    assert len(runs(again)) == 20
    assert overlaps(problems("t", TWENTY), problems("h", again))[0].share == 8 / 20


def test_the_first_of_equals_is_named_and_the_order_is_that_of_the_held_out():
    other = " ".join(f"v{n}" for n in range(13))
    found = overlaps(problems("t", TWENTY + " x", TWENTY + " y"), problems("h", other, TWENTY + " z", TWENTY))
    assert [(overlap.held_out, overlap.train) for overlap in found] == [("h1", "t0"), ("h2", "t0")]
    assert found[0].share == 8 / 9


def test_nothing_on_either_side():
    assert overlaps([], problems("h", TWENTY)) == ()
    assert overlaps(problems("t", TWENTY), []) == ()
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


@given(st.lists(st.text()), st.lists(st.text()))
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
