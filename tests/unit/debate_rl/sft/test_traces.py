"""Which replies become traces, what is said of their yield, and how files of them become one."""

from debate import Completion, Debate, DebateConfig, Persona, Problem, Turn
from debate.types import ParsedTurn, Span, TurnId
from debate_rl.evaluation.grading import Graded
from debate_rl.sft.harvests import chosen, read_traces, solutions, winners, write_traces
from rewards.types import Rewards
from transcripts import Record, write_step


def debate_of(problem, texts, *, reason="stop", seed=7):
    """A debate of one round in which each agent gave one of the texts as its solution."""
    protocol = DebateConfig(num_agents=len(texts), num_rounds=1)

    def turn(agent, text):
        said = Completion((), (), (), text, reason, 3, token_count=len(text))
        parsed = ParsedTurn(solution=Span(0, len(text)), answer="2")
        return Turn(TurnId(agent, 0), f"K{agent + 2}", (), said, parsed, ())

    turns = tuple(map(turn, range(len(texts)), texts))
    personas = tuple(Persona(f"P{agent}", "work") for agent in range(len(texts)))
    return Debate(problem, personas, turns, (), seed, 3, protocol)


def problem_of(number, level="1"):
    return Problem(f"p{number}", f"{number}?", "2", "sums", level, "number")


def test_right_replies_that_came_to_their_end_are_kept_and_counted_by_level():
    one, two, three = problem_of(1), problem_of(2, "5"), problem_of(3, "5")
    said = [(one, "It is 2.", True), (one, "It is 3.", False), (two, "none", "missing"), (three, "odd", None)]
    replies = [Graded(debate_of(problem, [text]), ((grade,),)) for problem, text, grade in said]
    replies += [Graded(debate_of(two, ["2, and so"], reason="length"), ((True,),))]
    harvest = solutions(replies, {"teacher": "t", "prompts": "abc"})
    [trace] = harvest.traces
    problem = {"id": "p1", "question": "1?", "answer": "2", "kind": "number", "source": "sums", "level": "1"}
    reply = {"reply": "It is 2.", "grade": "right", "tokens": 8}
    assert trace == problem | reply | {"provenance": {"teacher": "t", "prompts": "abc"}}
    assert harvest.rows() == [("all", 5, 1), ("1", 2, 1), ("5", 3, 0)]
    assert (harvest.problems, harvest.cut, harvest.ungraded) == (3, 1, 1)


def test_the_winners_of_a_run_that_are_right_become_solutions(tmp_path):
    def record(number, peer, correct):
        empty = ((None,), (None,))
        scored = Rewards(peer=peer, truth=empty, judge=empty, format=empty)
        debate = debate_of(problem_of(number), ["It is 2.", " It is 3. "])
        return Record(debate, 0, f"p{number}", correct, scored)

    best_first, best_second = ((1.0,), (-1.0,)), ((-1.0,), (1.0,))
    right, wrong = (True,), (False,)
    records = [record(1, best_first, (right, wrong)), record(2, best_second, (right, wrong))]
    records += [record(3, best_second, (wrong, right)), record(4, ((None,), (None,)), (right, right))]
    write_step(tmp_path / "transcripts", 0, records, tokens=False, seal=True)
    harvest = winners(tmp_path)
    assert [(t["id"], t["solution"]) for t in harvest.traces] == [("p3", "It is 3."), ("p1", "It is 2.")]
    assert harvest.rows() == [("all", 4, 2)]
    assert harvest.traces[0]["provenance"] == {"run": tmp_path.name, "step": 0, "policy_version": 3}


def test_files_are_joined_and_read_back(tmp_path):
    names = ("question", "reply", "level", "tokens")
    values = (("1?", "a", "1", 1), ("1?", "b", "1", 9), ("2?", "a", "5", 1), ("1?", "c", "1", 1))
    rows = [dict(zip(names, row, strict=True)) for row in values]
    write_traces(tmp_path / "a.jsonl", rows[:3])
    write_traces(tmp_path / "b.jsonl", [rows[0], rows[3]])
    traces = read_traces([tmp_path / "a.jsonl", tmp_path / "b.jsonl"])
    kept, lost = chosen(traces, per_problem=1, max_tokens=5, levels=["1"])
    assert kept == [rows[0]]
    told = ("longer than 5 tokens", "of other levels", "duplicates", "beyond 1 per problem")
    assert lost == dict.fromkeys(told, 1)
    assert chosen(traces)[0] == rows
