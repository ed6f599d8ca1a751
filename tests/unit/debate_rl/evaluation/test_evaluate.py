"""Evaluation against figures worked out by hand: two problems, three agents, two rounds, a final ballot."""

import pytest

from debate import DebateConfig, Problem
from debate.config import SummaryConfig
from debate.policies.scripted import ScriptedPolicy
from debate.prompting.reading import read_prompt
from debate.prompting.texts import load_prompts
from debate.types import SUMMARIZER
from debate_rl.commands.eval_tables import figures_table
from debate_rl.evaluation.evaluate import evaluate
from debate_rl.evaluation.play import EvalPlan
from debate_rl.evaluation.report import metrics
from debate_rl.evaluation.scores import difference
from debate_rl.metrics.debates import FORM_FAILURES
from envs import DataError, EnvironmentSpecError, Grade, GradeStatus

CONFIG = DebateConfig(num_rounds=2, prompts="tiny", max_tokens=500)
LAST = "debate/accuracy/round_1"
WINNER, MAJORITY = "debate/winner/accuracy", "direct/self_consistency"
TEXTS = load_prompts("tiny")
PROBLEMS = [Problem(name, f"Question {name}", answer="1", kind="number") for name in ("a", "b")]


class Exact:
    name = "exact"

    def problems(self, *, split, limit=None, seed=None):
        return tuple(PROBLEMS)

    def grade(self, problem, answer):
        if answer is None:
            return Grade(GradeStatus.MISSING, "exact")
        return Grade(GradeStatus.CORRECT if answer == problem.answer else GradeStatus.WRONG, "exact", answer)


ANSWERS = {("a", 0): "133", ("a", 1): "113", ("b", 0): "222", ("b", 1): "312"}
"""By problem and round, what each agent boxes."""


def solution(answer):
    return f"<solution>\\boxed{{{answer}}}</solution>"


def judged(seen, better):
    """Return the verdict of a judge who takes the boxed answer ``better`` over any other."""
    good = [e.handle for e in seen.entries if f"{{{better}}}" in e.solution and e.handle != seen.handle]
    rest = [e.handle for e in seen.entries if e.handle not in good and e.handle != seen.handle]
    lines = [f"{left} > {right}" for left in good for right in rest]
    return judgment("\n".join(lines))


def judgment(lines):
    return f"<evaluation>.</evaluation><comparison>{lines}\n</comparison>"


def script(*, better="1", answers=ANSWERS, votes=True):
    def reply(request):
        problem, round_ = request.debate.partition(":")[2], request.turn.round
        if request.stop == ("</solution>",):
            return solution(answers[problem, 0][request.turn.agent])
        seen = read_prompt(TEXTS, request.messages)
        spoken = judged(seen, better) if votes else judgment("")
        return spoken if round_ == 2 else solution(answers[problem, round_][request.turn.agent]) + spoken

    return reply


def value(found, name):
    return found.estimate(name).value


def gap(found, name, minus):
    return difference(found, name, found, minus)


def evaluated(script_, **changes):
    policy = ScriptedPolicy(script_, tokens=True)
    config = CONFIG.model_copy(update=changes)
    return evaluate(EvalPlan(PROBLEMS, Exact(), config, (4,)), policy), policy


@pytest.fixture(scope="module")
def found():
    return evaluated(script())


def test_accuracy_by_round_and_winner(found):
    evaluation, _ = found
    rounds = [evaluation.estimate(f"debate/accuracy/round_{r}") for r in (0, 1)]
    # round 0: a 1 of 3, b 0 of 3; round 1: a 2 of 3, b 1 of 3; the right one gets each vote
    assert [figure.value for figure in rounds] == pytest.approx([1 / 6, 3 / 6])
    assert [(f.n, f.clusters) for f in rounds] == [(6, 2)] * 2
    assert value(evaluation, WINNER) == 1.0
    assert value(evaluated(script(better="3"))[0], WINNER) == 0.0  # judges who prefer wrong ones


def test_differences_are_paired_by_problem(found):
    # a gains 1/3 and b gains 1/3: no spread, although the levels differ: at least sqrt(.025) of all gain that
    gain, lead = (gap(found[0], name, "debate/accuracy/round_0") for name in (LAST, WINNER))
    assert (gain.value, lead.value) == pytest.approx((1 / 3, (2 / 3 + 1) / 2))
    assert gain.low == pytest.approx(0.025**0.5 / 3 - (1 - 0.025**0.5))
    # the winner leads by 2/3 and by 1: deviations of 1/6, standard error 1/6, t(1 degree) = 12.706
    assert lead.high - lead.value == pytest.approx(12.7062047 / 6)


def test_self_consistency_spends_the_same_tokens_on_exactly_the_stated_samples(found):
    evaluation, policy = found
    # every problem: 3 openings, 3 turns that solve and judge, 3 ballots; votes cast: a 2 + 2, b 0 + 2
    opening, empty, vote = len(solution("1")), len(judgment("")), len("K7 > Q2")
    assert value(evaluation, "debate/generated_tokens") == 6 * opening + 6 * empty + 3 * vote == 513
    assert (opening, evaluation.samples) == (30, 17)
    assert value(evaluation, "direct/generated_tokens") == 17 * 30
    asked = [request for request in policy.requests if request.stop == ("</solution>",)]
    assert len(asked) == 2 * 3 + 2 * 18  # first rounds, then 17 samples from 6 debates of 3
    prompts = [sum(len(message.content) for message in request.messages) for request in asked]
    assert value(evaluation, "direct/prompt_tokens") == pytest.approx(17 * sum(prompts[:6]) / 6, rel=0.02)


def test_self_consistency_takes_the_majority_of_the_first_samples():
    # a: 17 answers 1, 3, 3, 1, ... of which 6 are right; b: all 2
    assert value(evaluated(script())[0], MAJORITY) == 0.0
    assert gap(evaluated(script())[0], WINNER, MAJORITY).value == 1.0
    # two agents review without votes: 30 + 30 + 26 tokens a seat, so 6 samples; a ties, b is right
    split = {("a", 0): "13", ("a", 1): "13", ("b", 0): "11", ("b", 1): "11"}
    pair, _ = evaluated(script(answers=split), num_agents=2)
    assert (pair.samples, value(pair, MAJORITY)) == (6, 0.75)


def test_the_majority_counts_wrong_answers_as_the_environment_tells_them_apart(monkeypatch):
    three = script(answers={("a", 0): "123", ("a", 1): "123", ("b", 0): "123", ("b", 1): "123"})
    apart, _ = evaluated(three)
    monkeypatch.setattr(Exact, "answer_key", lambda self, problem, text: "one", raising=False)
    together, _ = evaluated(three)
    assert (apart.samples, together.samples) == (17, 17)
    assert value(apart, MAJORITY) == 0.5  # 17 of 6, 6 and 5: right and one wrong answer tie
    assert value(together, MAJORITY) == 0.0


def test_without_any_vote_a_seeded_agent_of_the_last_round_wins():
    policy = ScriptedPolicy(script(votes=False), tokens=True)
    plans = [EvalPlan(PROBLEMS, Exact(), CONFIG, (seed,)) for seed in range(12)]
    winners, again = ([value(evaluate(plan, policy), WINNER) for plan in plans] for _ in range(2))
    assert winners == again
    assert len(set(winners)) > 1


def test_valid_xml_counts_turns_with_due_votes():
    valid = evaluated(script())[0].estimate("debate/valid_xml")
    assert (valid.value, valid.n) == (12 / 18, 2 * 3 * 3)  # votes were due from 12 turns and came from 6
    kinds = {name: value(evaluated(script())[0], f"debate/format/{name}") for name in FORM_FAILURES}
    assert kinds == dict.fromkeys(FORM_FAILURES, 0.0) | {"no_comparison": 6 / 18}
    table = [row[0] for row in figures_table({"start": evaluated(script())[0]})]
    assert [name for name in table if name.startswith("debate format")] == ["debate format no comparison"]
    assert value(evaluated(script(votes=False))[0], "debate/valid_xml") == 6 / 18


def test_one_agent_alone():
    evaluation, _ = evaluated(script(), num_agents=1, num_rounds=1)
    assert "debate/accuracy/round_1" not in evaluation.values
    assert evaluation.samples == 1
    assert value(evaluation, "debate/accuracy/round_0") == value(evaluation, WINNER) == 0.5
    assert value(evaluation, "debate/generated_tokens") == 30


def test_metrics_have_the_names_of_metrics_jsonl_and_bounds(found):
    evaluation, _ = found
    figures = metrics(evaluation)
    assert figures["eval/debate/accuracy/round_1"] == value(evaluation, LAST)
    assert figures["eval/direct/accuracy"] == pytest.approx(3 / 17)  # a: 6 of 17, b: none
    assert figures["eval/debate/winner_minus_self_consistency"] == 1.0
    counts = {"eval/problems": 2.0, "eval/ungraded": 0.0, "eval/direct/samples": 17.0}
    assert counts.items() <= figures.items()
    means = {name for name in figures if not name.endswith(("/low", "/high"))} - set(counts)
    alike = {f"eval/{name}_tokens" for name in ("debate/prompt", "direct/prompt", "direct/generated")}
    bounds = {f"{name}/{bound}" for name in means - alike for bound in ("low", "high")}
    assert set(figures) - means - set(counts) == bounds
    low, high = figures["eval/debate/winner/accuracy/low"], figures["eval/debate/winner/accuracy/high"]
    assert (low, high) == (pytest.approx(0.025**0.5), 1.0)  # Clopper and Pearson, 2 of 2


class Unsure(Exact):
    """A grader that gives up on some answers."""

    def __init__(self, *answers):
        self.answers = answers

    def grade(self, problem, answer):
        if answer in self.answers:
            return Grade(GradeStatus.TIMEOUT, "exact", answer)
        return super().grade(problem, answer)


def test_problems_without_a_verdict_are_left_out_and_counted():
    policy = ScriptedPolicy(script(), tokens=True)
    found = evaluate(EvalPlan(PROBLEMS, Unsure("2"), CONFIG, (0,)), policy)  # only "b" has an answer 2
    alone = evaluate(EvalPlan(PROBLEMS[:1], Exact(), CONFIG, (0,)), policy)
    assert value(found, LAST) == value(alone, LAST) == pytest.approx(2 / 3)
    assert (value(found, WINNER), found.estimate(WINNER).clusters) == (1.0, 1)
    assert metrics(found)["eval/ungraded"] == 1
    with pytest.raises(DataError, match="no verdict on any of 2 problems"):
        evaluate(EvalPlan(PROBLEMS, Unsure("1", "2", "3"), CONFIG, (0,)), policy)


def test_progress_counts_the_replies_of_debates_that_are_still_held():
    told: list[tuple[str, int, int, float]] = []
    environment = Exact()
    environment.main_thread_only = True  # type: ignore[attr-defined]
    plan = EvalPlan(PROBLEMS, environment, CONFIG, (0,))
    evaluate(plan, ScriptedPolicy(script(), tokens=True), tell=lambda *how: told.append(how))
    debates = [how[1:] for how in told if how[0] == "debates"]
    assert debates[0] == (0, 2, 0)
    assert debates[-1] == (2, 2, 2)
    work = [how[2] for how in debates]
    assert work == sorted(work)
    assert {round(1 / 9, 6), 1.0, 1.5} <= {round(one, 6) for one in work}  # 3 agents x 2 rounds and a ballot
    assert max(done for kept, _, done in debates if kept < 2) == 1.5  # it ends when the last one is graded


def test_open_problems_are_refused():
    policy = ScriptedPolicy(lambda request: solution("1"), tokens=True)
    with pytest.raises(EnvironmentSpecError, match="problem o: an open problem"):
        evaluate(EvalPlan([Problem("o", "Why?", kind="open")], Exact(), CONFIG, (0,)), policy)


def test_the_tokens_of_summaries_are_part_of_what_a_debate_costs():
    def summarised(request):
        return "All say 1." if request.turn.agent == SUMMARIZER else script(votes=False)(request)

    plain, _ = evaluated(script(votes=False))
    evaluation, policy = evaluated(summarised, summary=SummaryConfig(enabled=True))
    asked = [request for request in policy.requests if request.turn.agent == SUMMARIZER]
    assert len(asked) == 4  # rounds 1 and 2 of two debates; self-consistency asks for none
    more = value(evaluation, "debate/generated_tokens") - value(plain, "debate/generated_tokens")
    assert more == 2 * (len("All say 1.") + 1)  # with the end token
