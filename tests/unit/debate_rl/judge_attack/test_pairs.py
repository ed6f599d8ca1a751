"""Kept pairs and their judgments as figures, and what each persuader does to a text."""

from random import Random

import pytest

from debate.parsing import last_boxed
from debate_rl.judge_attack import pairs
from debate_rl.judge_attack.pairs import as_lines, folder_of, hack_gap, rates, step_file, watched_judge
from debate_rl.judge_attack.persuaders import MOST, PERSUADERS, WORDS, of_family, persuaded

ATTACKED = {"flattery": "wrong!", "order": "wrong"}
PAIRS = [pairs.JudgePair(f"p{n}", f"question {n}", "right", "wrong", "own", ATTACKED) for n in range(4)]


def judged(plain, flattery, order):
    """Return judgments of all pairs; a letter each: r(ight), w(rong), t(ie), n(one)."""
    words = {"r": "right", "w": "wrong", "t": "tie", "n": "none"}
    forms = {"plain": plain, "flattery": flattery, "order": order}
    every = [(n, attack, said[n]) for n in range(4) for attack, said in forms.items()]
    return [pairs.Judgment(n, attack, words[letter], f"{attack} {n}") for n, attack, letter in every]


def test_rates_count_only_a_preferred_right_side_and_order_in_both_orders():
    found = rates(PAIRS, judged("rrwr", "rwtn", "rrrw"))
    counts = {attack: sum(sum(row) for row in of.values()) for attack, of in found.items()}
    # in order: of the third pair the plain order is wrong, of the fourth the other one
    assert counts == {"plain": 3, "flattery": 1, "order": 2, "attacked": 3}
    assert pairs.accuracy(found, "attacked").value == 3 / 8
    assert pairs.fall(found).value == 3 / 4 - 3 / 8


def test_the_hack_gap_is_the_fall_less_that_of_the_start_judge_by_problem():
    start, now = (rates(PAIRS, judged(*one)) for one in (("rrrr", "rrrw", "rrrr"), ("rrrr", "wwww", "rrrr")))
    gap = hack_gap(now, start)
    # falls at the start 0, 0, 0, .5; now .5 each; differences .5, .5, .5, 0
    assert gap.value == pytest.approx(0.375)
    assert gap.clusters == 4
    # the standard error of these four is .125, t of 3 degrees 3.182
    assert gap.low == pytest.approx(0.375 - 3.182 * 0.125, abs=1e-3)
    assert hack_gap(now, start, "order").value == hack_gap(now, now).value == 0
    assert hack_gap(now, {}) is None
    alike = rates(PAIRS, judged("wwww", "wwww", "wwww"))  # worse at all pairs
    assert hack_gap(alike, rates(PAIRS, judged("rrrr", "rrrr", "rrrr"))).value == 0


def write(run, step=7, start="rrrr"):
    folder_of(run).mkdir()
    (folder_of(run) / "pairs.jsonl").write_bytes(as_lines(PAIRS))
    step_file(run, 0).write_bytes(as_lines(judged("rrrr", start, "rrrr")))
    step_file(run, step).write_bytes(as_lines(judged("rrrr", "rrww", "rrrr")))


def test_a_run_shows_its_newest_judge_beside_the_start_judge(tmp_path):
    assert watched_judge(tmp_path) is None
    write(tmp_path)
    watched = watched_judge(tmp_path)
    assert pairs.judged_steps(tmp_path) == [0, 7]
    assert watched.step == 7
    figures = {f.attack: (f.start.value, f.now.value, f.gap and f.gap.value) for f in watched.figures}
    assert figures["plain"] == (1, 1, None)
    assert figures["flattery"] == (1, 0.5, 0.5)
    assert figures["attacked"] == (1, 0.75, 0.25)
    fooled = [(one.number, one.now.attack) for one in watched.attacks if one.fooled]
    assert fooled == [(2, "flattery"), (3, "flattery")]
    assert watched_judge(tmp_path, 3) is None


def test_a_damaged_line_is_named(tmp_path):
    write(tmp_path)
    with (folder_of(tmp_path) / "pairs.jsonl").open("a") as file:
        file.write('{"problem": 3}\n')
    with pytest.raises(ValueError, match=r"pairs\.jsonl:5: is not"):
        pairs.read_pairs(tmp_path)


def test_later_judgments_than_the_step_of_a_resumed_run_are_set_aside(tmp_path):
    write(tmp_path)
    for _ in range(2):  # the second time there is one of that name
        step_file(tmp_path, 7).write_bytes(as_lines(judged("rrrr", "rrww", "rrrr")))
        step_file(tmp_path, 3).write_bytes(as_lines(judged("rrrr", "rrrr", "rrrr")))
        pairs.set_aside_judged(tmp_path, 3)
        assert pairs.judged_steps(tmp_path) == [0, 3]
    assert len(list(folder_of(tmp_path).glob("step_000007.superseded*.jsonl"))) == 2


TEXT = "First 3 + 9 = 12. So we get \\boxed{12}"
TINY = of_family(" 3 + 9 = 12 right.")


def attacked(name, text, phrases=WORDS, read=last_boxed):
    return persuaded(name, text, phrases, read, Random(0))


def test_each_persuader_does_what_its_name_says():
    text = " 3 + 9 = 12. \\boxed{ 3 9}"
    ends = {"flattery": " careful judge.", "verified": " right.", "fake_check": " 3 + 9 = 12 right."}
    ends |= {"authority": " judge review right.", "order": ""}
    said = {name: text + end for name, end in ends.items()}
    said |= {"padding": f" 3 + 9 = 12.{text}", "paraphrase": " 9 + 3 = 12. \\boxed{ 3 9}"}
    assert {name: attacked(name, text, TINY) for name in PERSUADERS} == said


def test_words_stand_before_a_text_whose_end_is_its_answer():
    said = attacked("verified", "it is 5", read=lambda text: text[-1:])
    assert said.endswith("\n\nit is 5")
    assert said.partition("\n\n")[0] in WORDS.verified


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("2 * 3 + 4 = 10.", "2 * 3 + 4 = 10."),  # its 3 + 4 is no sum by itself
        ("3 + 4 + 5 = 12.", "3 + 4 + 5 = 12."),
        ("A: 3 + 4 = 7", "A: 4 + 3 = 7"),
        ("Thus \\boxed{so}", "So \\boxed{so}"),
    ],
)
def test_a_paraphrase_keeps_what_is_computed(text, said):
    assert attacked("paraphrase", text) == said


def test_padding_is_bounded_and_never_repeats_a_box():
    text = f"{'one. ' * 5000}\\boxed{{1}}"
    assert len(text) < len(attacked("padding", text)) <= len(text) + MOST
    assert attacked("padding", "\\boxed{1}. \\boxed{2}").count("\\boxed") == 2
