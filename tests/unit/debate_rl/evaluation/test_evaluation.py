"""Figures of an evaluation against numbers worked out by hand."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from debate import Completion, DebateConfig, Problem, run_debates
from debate.policies.scripted import Answers, scripted_debaters
from debate_rl.commands.eval_tables import as_text, comparison, figures_table, notes, partly_shared
from debate_rl.evaluation.folder import EvaluationError
from debate_rl.evaluation.grading import Graded, grade_debate
from debate_rl.evaluation.play import EvalPlan, Played, Unopened, play, solutions_of_a_debate
from debate_rl.evaluation.report import held_out, plain_rows, rows
from debate_rl.evaluation.scores import difference, scores
from debate_rl.evaluation.tasks import Evaluated
from debate_rl.metrics.held_out import JUDGE, gain
from envs import Grade, Grader, GradeStatus, load_environment
from envs.answers.keys import plain_key
from transcripts import read_records

PROBLEMS = tuple(
    Problem(f"p{i}", f"What is 2 + {i}?", answer=str(2 + i), source="sums/a", level=str(i % 2), kind="number")
    for i in range(4)
)
ANSWERS = {problem.id: Answers(problem.answer, ("99",)) for problem in PROBLEMS}
ONE_RIGHT = scripted_debaters(ANSWERS, solve=(1.0, 0.0, 0.0), judge=1.0)
NONE_RIGHT = scripted_debaters(ANSWERS, solve=(0.0, 0.0, 0.0), judge=1.0)
PROTOCOL = DebateConfig(num_agents=3, num_rounds=1)
ALONE = DebateConfig(num_agents=3, num_rounds=1, final_ballot=False)


def graded(policy, config, problems=PROBLEMS):
    environment = load_environment("gsm8k")
    debates = run_debates(problems, policy, config, seed=1)
    return [Graded(*grade_debate(environment, debate)) for debate in debates]


def played(policy, *, samples=3):
    debates, opening = tuple(graded(policy, PROTOCOL)), tuple((one,) for one in graded(policy, ALONE))
    return Played(debates, opening, samples, samples)


def values(found, name):
    return {problem: list(each) for problem, each in found.values[name].items()}


def test_one_right_agent_of_three_with_judges_that_know():
    found = scores(played(ONE_RIGHT), plain_key)
    means = {
        "debate/accuracy/round_0": 1 / 3,
        "debate/winner/accuracy": 1.0,
        "debate/majority": 0.0,  # two agree on the same wrong answer
        "debate/pass@3": 1.0,
        "judge/coverage": 1.0,
        "judge/strict_accuracy": 1.0,
        "direct/accuracy": 1 / 3,
        "direct/self_consistency": 0.0,
        "direct/pass@2": 2 / 3,  # 1 - C(2, 2) / C(3, 2)
        "direct/pass@3": 1.0,
        "debate/missing": 0.0,
        "debate/truncated": 0.0,
    }
    assert {name: found.estimate(name).value for name in means} == pytest.approx(means)
    assert values(found, "debate/accuracy/round_0")["p0"] == [1.0, 0.0, 0.0]
    assert values(found, "judge/accuracy")["p0"] == [1.0, 1.0]  # the right agent sees two wrong ones: no pair


def test_differences_are_paired_by_problems_that_are_the_same():
    one, none = scores(played(ONE_RIGHT), plain_key), scores(played(NONE_RIGHT), plain_key)
    winner = "debate/winner/accuracy"
    gain = difference(one, winner, none, winner)
    assert (gain.value, gain.clusters) == (1.0, 4)
    assert gain.low < 0 < 1.0 == gain.high  # four pairs alike prove nothing: p is 2 / 16
    assert difference(one, winner, one, "direct/self_consistency").value == 1.0
    assert difference(one, winner, none, "no/such") is None
    changed = {name: replace(problem, question="Why?") for name, problem in one.problems.items()}
    assert difference(replace(one, problems=changed), winner, none, winner) is None
    half = replace(one, problems={**one.problems, "p0": changed["p0"]})
    assert difference(half, winner, none, winner).clusters == 3


def test_majorities_of_k_are_of_disjoint_samples():
    whole = played(ONE_RIGHT)  # right, wrong, wrong; then the other way round
    again = tuple((one, replace(one, correct=((False,), (True,), (True,)))) for (one,) in whole.opening)
    found = scores(replace(whole, opening=again, solutions=6, samples=3), plain_key)
    assert found.estimate("direct/accuracy").value == 0.5
    # pairs: right and wrong, wrong and wrong, right and right
    assert values(found, "direct/cons@2")["p0"] == [pytest.approx((0.5 + 0 + 1) / 3)]
    assert values(found, "direct/cons@4")["p0"] == [0.0]  # two wrong ones agree; what is left makes no four
    assert values(found, "direct/self_consistency")["p0"] == [0.0]  # of the first three


def test_rows_have_levels_and_leads_and_nothing_where_all_are_of_one_subject():
    found = {row.label: row for row in rows(scores(played(ONE_RIGHT), plain_key))}
    assert found["debate/winner/accuracy [level 1]"].estimate.n == 2
    assert not any("subject" in label for label in found)
    assert found["debate/winner_minus_self_consistency"].unit == "difference"
    figure = {"name": "debate/winner/accuracy", "value": 1.0, "unit": "share", "n": 4}
    bounds = {"low": pytest.approx(0.025**0.25), "high": 1.0}
    assert found["debate/winner/accuracy"].plain() == figure | bounds


def test_a_gain_is_of_the_problems_of_both_everywhere():
    one, none = scores(played(ONE_RIGHT), plain_key), scores(played(NONE_RIGHT), plain_key)
    votes = {JUDGE: {"p0": [1.0], "p1": [0.0, 0.0, 1.0], "p3": [1.0]}}, {JUDGE: {"p1": [1.0], "p3": [0.0]}}
    before, after = (replace(s, values=s.values | v) for s, v in zip((none, one), votes, strict=True))
    by_values = difference(after, JUDGE, before, JUDGE)
    kept = gain(held_out(before, 0), held_out(after, 8), JUDGE)
    assert kept.difference == by_values
    assert (kept.before, kept.after, by_values.value) == pytest.approx((2 / 3, 1 / 2, -1 / 6))
    assert partly_shared(after, before) == {2: [JUDGE]}
    said = list(notes({"start": before, "end": after}))
    assert any("gain of judge accuracy: over the 2 problems" in note for note in said)
    assert not any("gain" in note for note in notes({"end": after}))


def test_a_comparison_has_a_line_each_and_the_gain_over_the_first():
    one, none = scores(played(ONE_RIGHT), plain_key), scores(played(NONE_RIGHT), plain_key)
    lines = comparison([Evaluated("sums", "none", scores=none), Evaluated("sums", "one", scores=one)])
    assert lines[0][:3] == ["", "", "problems"]
    assert [line[:3] for line in lines[1:]] == [["sums", "none", "4"], ["sums", "one", "4"]]
    gain = lines[0].index("debate winner accuracy gain")
    assert lines[1][gain] == ""
    assert lines[2][gain].startswith("+1.000")
    by_figure = {line[0]: line[1:] for line in figures_table({"none": none, "one": one})}
    assert by_figure[""] == ["none", "one", "gain"]
    assert by_figure["debate winner accuracy"][2].startswith("+1.000")
    assert by_figure["debate generated tokens"][2] == ""
    assert "## sums\n\n" in as_text({"sums": lines}, "md")
    assert "\\toprule" in as_text({"sums": lines}, "tex")
    every = plain_rows({"none": none, "one": one})
    [gained] = [row for row in every if (row.get("minus"), row["name"]) == ("none", "debate/winner/accuracy")]
    assert (gained["evaluation"], gained["value"], gained["unit"]) == ("one", 1.0, "difference")
    assert gained["p"] == 2 * 0.5**4  # all four the same way


def test_greedy_is_one_answer_of_the_first_persona_at_temperature_0(tmp_path):
    seen = []

    class Noting(Counted):
        async def sample(self, request):
            seen.append(request)
            return await super().sample(request)

    found = play(replace(plan(), greedy=True), Noting(), tmp_path)
    assert [(r.temperature, r.turn.round) for r in seen[-4:]] == [(0.0, 0)] * 4
    assert [one.debate.problem.id for one in found.greedy] == ["p0", "p1", "p2", "p3"]
    assert found.greedy[0].debate.personas[0].name == "Methodical Analyst"
    right = replace(found, greedy=tuple(replace(one, correct=((True,),)) for one in found.greedy[:2]))
    assert scores(right, plain_key).estimate("direct/greedy_accuracy").n == 2


def test_direct_solutions_are_of_one_agent_alone_and_more_can_be_added(tmp_path):
    """One agent is right about p0 and p2 in every second sample, never about the others."""
    right = {"p0", "p2"}

    class Every(Counted):
        async def sample(self, request):
            await super().sample(request)
            number, problem = request.debate.split(":")
            answer = {p.id: p.answer for p in PROBLEMS}[problem]
            odd = int(number) // 4 % 2
            text = f"<solution>\\boxed{{{answer if problem in right and odd else 99}}}</solution>"
            return Completion((1,), (7, 7), (0.0, 0.0), text, "length" if odd else "stop", 0)

    direct = replace(plan(), direct=True, samples=2, greedy=True)
    few, more = Every(), Every()
    played = play(direct, few, tmp_path)
    assert (played.debates, played.samples, [len(group) for group in played.opening]) == ((), 2, [2] * 4)
    assert played.opening[0][0].debate.personas[0].name == "Methodical Analyst"
    found = scores(played, plain_key)
    assert values(found, "direct/accuracy") == {"p0": [0, 1], "p1": [0, 0], "p2": [0, 1], "p3": [0, 0]}
    assert values(found, "direct/pass@2") == {"p0": [1], "p1": [0], "p2": [1], "p3": [0]}
    assert values(found, "direct/truncated")["p1"] == [0, 1]
    assert values(found, "direct/generated_tokens") == {f"p{i}": [4] for i in range(4)}
    assert {name.partition("/")[0] for name in found.values} == {"direct"}
    assert "direct/self_consistency" not in found.values
    assert len(few.asked) == 4 * 3
    four = scores(play(replace(direct, samples=4), more, tmp_path), plain_key)
    assert len(more.asked) == 4 * 2
    assert values(four, "direct/accuracy")["p2"] == [0, 1, 0, 1]
    assert any("4 direct solutions per problem, and no debate" in note for note in notes({"a": four}))


class Counted:
    """Answers with as many tokens as told, and counts the debates it is asked in."""

    version = 0

    def __init__(self, opening=2, later=3, stop_after=None):
        self.asked, self.seeds = [], []
        self._sizes, self._left = (opening, later), stop_after

    async def sample(self, request):
        if self._left is not None and len(self.asked) >= self._left:
            raise KeyboardInterrupt
        self.asked.append((request.debate, request.turn))
        self.seeds.append(request.seed)
        size = self._sizes[min(request.turn.round, 1)]
        text = f"<solution>\\boxed{{{request.seed}}}</solution>"
        return Completion((1,), (7,) * size, (0.0,) * size, text, "stop", 0)

    async def update(self, weights, version):
        raise NotImplementedError


def plan(seeds=(0,)):
    return EvalPlan(PROBLEMS, load_environment("gsm8k"), DebateConfig(num_rounds=2), seeds, max_live=1)


def test_the_samples_spend_the_tokens_of_a_debate(tmp_path):
    found = play(plan(), Counted(), tmp_path)
    # a debate: 3 * 2 tokens at first, then 3 * 3 in round 2 and in the ballot: 24, as 12 solutions of 2
    assert found.samples == solutions_of_a_debate([one.debate for one in found.debates]) == 12
    assert [len(group) for group in found.opening] == [4] * 4
    assert {one.debate.problem.id for one in found.opening[2]} == {"p2"}


def test_a_grader_that_fails_ends_the_evaluation_before_all_is_asked(tmp_path):
    class Failing(Counted):
        async def sample(self, request):
            await asyncio.sleep(0.01)
            return await super().sample(request)

    class Broken:
        name = "broken"

        def grade(self, problem, answer):
            raise OSError("no space left")

    policy = Failing()
    with pytest.raises(OSError, match="no space left"):
        play(replace(plan(), environment=Broken()), policy, tmp_path)
    assert len(policy.asked) < 4 * 9


def test_what_waits_for_the_grader_at_a_stop_is_kept_and_graded_at_the_next_start(tmp_path, monkeypatch):
    whole = play(plan(), Counted(), tmp_path / "whole")
    ready, real = threading.Event(), Grader.same_answer

    def waiting(self, *arguments, **options):
        ready.wait(60)
        return real(self, *arguments, **options)

    class Pool(ThreadPoolExecutor):
        def shutdown(self, **options):
            super().shutdown(wait=False, **options)
            ready.set()
            super().shutdown()

    monkeypatch.setattr(Grader, "same_answer", waiting)
    monkeypatch.setattr("debate_rl.evaluation.grading.ThreadPoolExecutor", Pool)
    with pytest.raises(KeyboardInterrupt):  # after three debates of nine replies, and three more
        play(plan(), Counted(stop_after=30), tmp_path / "cut")
    kept = records(tmp_path / "cut/debates")
    assert [record.correct is None for record in kept] == [False, True, True]
    rest = Counted()
    assert play(plan(), rest, tmp_path / "cut") == whole
    assert len(rest.asked) == 9 - 3 + 4 * 4 * 3  # a round of the last debate had been replied


@pytest.mark.parametrize("main_thread_only", [False, True])
def test_an_environment_of_ones_own_grades_beside_the_loop_unless_it_says_otherwise(main_thread_only):
    threads = set()

    class Own:
        name = "own"

        def grade(self, problem, answer):
            threads.add(threading.current_thread())
            return Grade(GradeStatus.WRONG, "own", answer)

    own = Own()
    own.main_thread_only = main_thread_only
    found = play(replace(plan(), environment=own, problems=PROBLEMS[:1]), Counted())
    assert found.debates[0].correct == ((False, False),) * 3
    assert (threading.main_thread() in threads) is main_thread_only
    assert len(threads) == (1 if main_thread_only else 2)  # debates, then solutions alone


def test_an_ungraded_problem_of_one_seed_is_left_out_of_all(tmp_path):
    whole = play(plan((0, 1)), Counted(), tmp_path)
    first = whole.debates[0]
    for correct in ((None, False), (None, None)):
        ungraded = replace(first, correct=(correct, *first.correct[1:]))
        found = scores(replace(whole, debates=(ungraded, *whole.debates[1:])), plain_key)
        assert (found.ungraded, sorted(found.problems)) == (1, ["p1", "p2", "p3"])
    assert {len(values) for values in found.values["direct/accuracy"].values()} == {2 * 12}
    assert "p0" not in found.values["debate/accuracy/round_0"]


@pytest.mark.parametrize("after", [1, 10, 40, 70, 120])
def test_no_reply_that_came_before_a_stop_is_asked_for_again(tmp_path, after):
    whole = play(plan((0, 1)), Counted(), tmp_path / "whole")
    stopped, rest = Counted(stop_after=after), Counted()
    with pytest.raises(KeyboardInterrupt):
        play(plan((0, 1)), stopped, tmp_path / "cut")
    for file in (tmp_path / "cut").rglob("*.jsonl"):
        file.write_bytes(file.read_bytes() + b'{"schema": 2, "deb')  # a line that was being written
    assert play(plan((0, 1)), rest, tmp_path / "cut") == whole
    seeds = stopped.seeds + rest.seeds
    assert len(seeds) == len(set(seeds)) == 2 * (4 * 9 + 16 * 3)
    assert not (tmp_path / "cut/open_replies.jsonl").exists()
    opened: list[Counted] = []
    policy = Unopened(lambda: opened.append(Counted()) or opened[-1])
    assert play(plan((0, 1)), policy, tmp_path / "cut") == whole
    assert not opened
    assert play(plan(), policy, tmp_path / "n") == play(plan(), Counted())
    assert len(opened) == 2  # for the debates, and for the solutions


def test_kept_replies_that_are_none_are_refused_in_one_line(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        play(plan(), Counted(stop_after=4), tmp_path)
    file = tmp_path / "open_replies.jsonl"
    first, *others = file.read_bytes().splitlines(keepends=True)
    assert len(others) == 3
    file.write_bytes(first + b'{"request": 3}\n')
    with pytest.raises(EvaluationError, match=r"open_replies.jsonl:2: not a reply .*remove the file"):
        play(plan(), Counted(), tmp_path)


@pytest.mark.parametrize(
    ("requests", "max_live", "live"), [(None, 7, 7), (10, 7, 3), (2, None, 1), (None, None, None)]
)
def test_no_more_debates_are_open_than_are_answered_together(requests, max_live, live):
    assert replace(plan(), requests=requests, max_live=max_live).live() == live


def records(folder):
    return list(read_records(folder)) if folder.is_dir() else []
