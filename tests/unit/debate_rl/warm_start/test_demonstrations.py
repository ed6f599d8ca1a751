"""Demonstrations: read by the real parser, under the prompts of real debates, true where they should be."""

import asyncio
from random import Random

import pytest

from debate import DebateConfig, hold_debate, parse_turn
from debate.policies.scripted import ScriptedPolicy
from debate.prompting.reading import read_prompt
from debate.prompting.rendering import SECTIONS
from debate.prompting.texts import load_prompts
from debate_rl.config.warm_start import WarmStartConfig
from debate_rl.warm_start.demonstrations import Demonstrator
from envs import load_environment
from envs.families import FAMILIES

HANDLES = ("K7", "Q2", "M4")
CONFIG = DebateConfig(num_rounds=2, prompts="tiny", handles=HANDLES)
TEXTS = load_prompts("tiny")
HONEST = WarmStartConfig(
    right=(0.6, 0.4, 0.5), lure=(0.3,), adopt=0.9, lie=0.3, invent=0.3, misjudge=0.0, decidable=0.6
)


def problems_of(family, limit=30):
    return load_environment(family).problems(split="train", limit=limit, seed=0)


def shown(family, kind, *, habits=HONEST, config=CONFIG, seed=0, **options):
    demonstrator = Demonstrator(family, config, habits, Random(seed))
    return [(p, demonstrator.show(kind, p, **options)) for p in problems_of(family)]


def is_right(family, problem, solution):
    return " right" in FAMILIES[family].write_check(problem, solution)


def seen_by(demonstration):
    """Return what the prompt shows, the author's label, and the parsed reply."""
    seen = read_prompt(TEXTS, demonstration.messages)
    due = seen.task in ("debate", "ballot")
    parsed = parse_turn(demonstration.reply, handles=HANDLES, own=seen.handle, due=due)
    return seen, parsed


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("kind", "task"), [("solve", "opening"), ("debate", "debate"), ("ballot", "ballot")])
def test_every_reply_is_read_without_failure(family, kind, task):
    for _, demonstration in shown(family, kind):
        seen, parsed = seen_by(demonstration)
        assert seen.task == task
        absent = {"solution"} if kind == "ballot" else set()
        assert {failure.detail for failure in parsed.failures} == absent
        assert len(parsed.ballots) == (0 if kind == "solve" else 1)
        assert demonstration.reply.endswith(f"</{SECTIONS[task][-1]}>")  # where the debate would stop it
        assert (parsed.answer is None) == (kind == "ballot")


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("kind", ["debate", "ballot"])
def test_verdicts_and_comparisons_are_true(family, kind):
    decidable = 0
    for problem, demonstration in shown(family, kind):
        seen, parsed = seen_by(demonstration)
        truth = {e.handle: is_right(family, problem, e.solution) for e in seen.entries}
        evaluation = parsed.evaluation.of(demonstration.reply)
        verdicts = dict(part.split(":", 1) for part in evaluation.strip().split(". "))
        assert set(verdicts) == set(HANDLES) - {seen.handle}
        assert {h: " right" in text for h, text in verdicts.items()} == {h: truth[h] for h in verdicts}
        ballot = parsed.ballots[0]
        assert ballot.outcome == "left"
        assert truth[ballot.left] >= truth[ballot.right]
        decidable += truth[ballot.left] != truth[ballot.right]
    assert 10 <= decidable <= 26  # 0.6 of 30


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("misjudge", [0.5, 1.0])
def test_lured_checks_come_as_often_as_asked_and_never_in_drills(family, misjudge):
    write_check, lured, total = FAMILIES[family].write_check, 0, 0
    habits = HONEST.model_copy(update={"misjudge": misjudge})
    for problem, demonstration in shown(family, "ballot", habits=habits):
        seen, parsed = seen_by(demonstration)
        written = {entry.handle: entry.solution for entry in seen.entries}
        for part in parsed.evaluation.of(demonstration.reply).strip().split(". "):
            handle, check = part.split(":", 1)
            checks = [write_check(problem, written[handle], lured=by) for by in (False, True)]
            assert check.rstrip(".") + "." in checks
            if checks[0] != checks[1]:
                total += 1
                lured += check.rstrip(".") + "." == checks[1]
    assert lured / total == pytest.approx(misjudge, abs=0.2)
    drills = [d for _, d in shown(family, "drill", habits=habits)]
    assert drills == [d for _, d in shown(family, "drill")]


def test_ballots_by_swiss_pairing_show_one_pair_of_others():
    handles = (*HANDLES, "X9", "C3")
    config = CONFIG.model_copy(update={"num_agents": 5, "handles": handles, "ballot": "swiss"})
    decidable = HONEST.model_copy(update={"decidable": 1.0})
    mixed = 0
    for problem, demonstration in shown("pair_sum", "ballot", config=config, habits=decidable):
        seen = read_prompt(TEXTS, demonstration.messages)
        pair = {entry.handle: is_right("pair_sum", problem, entry.solution) for entry in seen.entries}
        assert (len(pair), seen.handle in pair) == (2, False)
        parsed = parse_turn(demonstration.reply, handles=handles, own=seen.handle, due=True)
        [ballot] = parsed.ballots
        assert {ballot.left, ballot.right} == pair.keys()
        mixed += len(set(pair.values())) == 2
    assert mixed >= 25
    [*later] = shown("pair_sum", "debate", config=config)
    assert all(len(read_prompt(TEXTS, one.messages).entries) == 5 for _, one in later)


@pytest.mark.parametrize("family", FAMILIES)
def test_solutions_are_as_right_as_asked_and_adopted_when_seen(family):
    assert all(is_right(family, p, d.reply) for p, d in shown(family, "solve", only_right=True))
    share = sum(is_right(family, p, d.reply) for p, d in shown(family, "solve")) / 30
    assert 0.25 <= share <= 0.85
    for problem, demonstration in shown(family, "debate", habits=HONEST.model_copy(update={"adopt": 1.0})):
        seen, parsed = seen_by(demonstration)
        if any(is_right(family, problem, entry.solution) for entry in seen.entries):
            assert is_right(family, problem, parsed.solution.of(demonstration.reply))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("history", [1, -1])
def test_prompts_are_those_of_debates_in_the_same_situation(family, history):
    """Hold debates in which each agent repeats what the demonstration shows, seat by seat."""
    config = CONFIG.model_copy(update={"history_rounds": history})
    for kind, round_ in (("solve", 0), ("debate", 1), ("ballot", 2)):
        for problem in problems_of(family, 8):
            rng = Random(5)
            seed = Random(5).getrandbits(62)  # the demonstrator's first draw seats the debate
            demonstration = Demonstrator(family, config, HONEST, rng).show(kind, problem)
            seen = read_prompt(TEXTS, demonstration.messages)
            solutions = {entry.handle: entry.solution for entry in seen.entries}
            debate, requests = repeated(problem, config, seed, solutions)
            author = next(t.id.agent for t in debate.turns if t.handle == seen.handle)
            request = next(r for r in requests if (r.turn.agent, r.turn.round) == (author, round_))
            assert request.messages == demonstration.messages


def repeated(problem, config, seed, solutions):
    def say(request):
        handle = read_prompt(TEXTS, request.messages).handle
        others = [label for label in HANDLES if label != handle]
        judged = f"<evaluation>.</evaluation><comparison>{' > '.join(others)}</comparison>"
        solution = f"<solution>{solutions.get(handle, '')}</solution>"
        return (solution, solution + judged, judged)[request.turn.round]

    policy = ScriptedPolicy(say)
    return asyncio.run(hold_debate(problem, policy, config, seed=seed)), policy.requests


def weighted(demonstration):
    return [(demonstration.reply[start:end], weight) for start, end, weight in demonstration.weights]


def test_weights_lie_on_copies_verdicts_and_the_choice():
    adopted = 0
    for problem, demonstration in shown("pair_sum", "debate"):
        first, _, evaluation = demonstration.reply.partition("<evaluation>")
        solution = first.removeprefix("<solution>").removesuffix("</solution>")
        weights = weighted(demonstration)
        if weights[0][0] == solution.partition("=")[0]:  # the pair that was taken over
            adopted += 1
            seen, _ = seen_by(demonstration)
            assert solution in {e.solution for e in seen.entries if is_right("pair_sum", problem, e.solution)}
            assert weights.pop(0)[1] == 3.0
        for text, weight in weights:
            assert text in evaluation
            assert weight == (2.0 if text.strip().isdigit() else 3.0)
        words = [text for text, _ in weights]
        assert sum(text in (" right", " wrong") for text in words) == 2
        assert sum(text in HANDLES for text in words) == 1
        assert evaluation.partition("<comparison>")[2].startswith(next(t for t in words if t in HANDLES))
        assert demonstration.base_weight == 1.0
    assert 10 < adopted < 30
