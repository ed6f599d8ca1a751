import asyncio
from pathlib import Path

import pytest

from debate import DebateConfig, Message, Persona, Problem, SampleRequest, hold_debate
from debate.policies import ScriptedPolicy
from debate.prompting.reading import read_prompt
from debate.prompting.seating import seat_debate
from debate.prompting.texts import SHIPPED, PromptFileError, load_prompts

PROBLEM = Problem("p", "Target 19. Numbers 3 8 5 11 10 9.", "11,8", kind="expression")
SOLUTIONS = (" 3 + 8 = 11. \\boxed{ 3 8}", " 11 + 8 = 19. \\boxed{ 11 8}", " 10 + 9 = 19. \\boxed{ 10 9}")


def prompts_of(config, problem=PROBLEM, *, seed=1):
    """Return the requests of a debate in which each agent says its own solution, evaluation and vote."""

    def say(request):
        seat, round_ = request.turn.agent, request.turn.round
        review = f"<evaluation> reviewed by {seat} in {round_}</evaluation><comparison>none</comparison>"
        return f"<solution>{SOLUTIONS[seat % 3]}</solution>{review}"

    policy = ScriptedPolicy(say)
    asyncio.run(hold_debate(problem, policy, config, seed=seed))
    return {(request.turn.agent, request.turn.round): request for request in policy.requests}


def user(request: SampleRequest) -> str:
    return request.messages[-1].content


TINY = DebateConfig(
    num_rounds=2,
    prompts="tiny",
    handles=("K7", "Q2", "M4"),
    personas=(Persona("One", "careful"), Persona("Two", "bold"), Persona("Three", "odd")),
)


def test_the_tiny_set_renders_exactly():
    seating = seat_debate(PROBLEM, TINY, 1)
    requests = prompts_of(TINY)
    history = "".join(f"{seating.handles[seat]}:{SOLUTIONS[seat]}\n" for seat in seating.orders[0])
    for seat, word in enumerate(("careful", "bold", "odd")):
        start, handle = "Target 19. Numbers 3 8 5 11 10 9.\n", seating.handles[seat]
        assert requests[seat, 0].messages == (Message("user", f"{start}{handle} {word} solve"),)
        assert requests[seat, 1].messages == (Message("user", f"{start}{history}{handle} {word} debate"),)
        assert requests[seat, 2].messages == (Message("user", f"{start}{history}{handle} {word} judge"),)


def test_the_default_opening():
    request = prompts_of(DebateConfig(num_rounds=1, personas=(Persona("Anna", "Count twice."),)))[0, 0]
    handle = seat_debate(PROBLEM, DebateConfig(), 1).handles[0]
    assert [m.role for m in request.messages] == ["system", "user"]
    assert user(request) == (
        "Problem:\nTarget 19. Numbers 3 8 5 11 10 9.\n"
        f"\nYour label is {handle}. Your way of working: Count twice.\n"
        "\nSolve the problem. Write the <solution> section only; there is nothing to evaluate or to compare"
        " yet. Give your final answer once, at the end of the solution, as \\boxed{answer}."
    )


def test_the_default_debate_round_and_ballot():
    config = DebateConfig(num_agents=3, num_rounds=2, personas=(Persona("Anna", "Count twice."),))
    requests, seating = prompts_of(config), seat_debate(PROBLEM, config, 1)
    order, handles = seating.orders[0], seating.handles
    first = "".join(
        f'<work agent="{handles[seat]}" round="1">\n<solution>\n{SOLUTIONS[seat].strip()}\n</solution>\n'
        "</work>\n"
        for seat in order
    )
    second = "".join(
        f'<work agent="{handles[seat]}" round="2">\n<solution>\n{SOLUTIONS[seat].strip()}\n</solution>\n'
        f"<evaluation>\nreviewed by {seat} in 1\n</evaluation>\n</work>\n"
        for seat in order
    )
    start = f"Problem:\n{PROBLEM.question}\n\nWork shown to you:\n\n"
    others = ", ".join(handles[seat] for seat in order if seat != 0)
    text = user(requests[0, 1])
    assert text.startswith(f"{start}{first}\nYour label is {handles[0]};")
    assert f"in pairs, among these labels: {others}. Your own work is not compared." in text
    assert text.endswith("as \\boxed{answer}.")
    ballot = user(requests[0, 2])
    assert ballot.startswith(f"{start}{second}\nYour label is {handles[0]};")
    assert "This is the final ballot. Do not write a solution." in ballot
    assert "boxed{answer}" not in ballot


def test_what_agents_share_comes_first():
    """With one order for all, the prompts of a round differ only from the task on (prefix caching)."""
    requests = prompts_of(DebateConfig(num_rounds=2))
    for round_ in (1, 2):
        parts = {user(requests[seat, round_]).partition("\nYour label is")[0] for seat in range(3)}
        assert len(parts) == 1
        assert len({requests[seat, round_].messages[0] for seat in range(3)}) == 1


@pytest.mark.parametrize(
    ("agents", "own", "rounds", "history", "expected"),
    [
        (1, False, 1, 1, {0: "opening"}),
        (1, True, 3, -1, {0: "opening", 1: "review", 2: "review"}),
        (2, False, 2, 1, {0: "opening", 1: "review"}),
        (2, True, 2, 1, {0: "opening", 1: "debate", 2: "ballot"}),
        (3, False, 1, 1, {0: "opening", 1: "ballot"}),
        (3, False, 2, 0, {0: "opening", 1: "opening"}),
        (3, True, 3, 1, {0: "opening", 1: "debate", 2: "debate", 3: "ballot"}),
        (7, False, 2, 2, {0: "opening", 1: "debate", 2: "ballot"}),
    ],
)
@pytest.mark.parametrize("prompts", ["default", "tiny"])
def test_which_task_each_round_sets(agents, own, rounds, history, expected, prompts):
    config = DebateConfig(
        num_agents=agents, num_rounds=rounds, judge_own=own, history_rounds=history, prompts=prompts
    )
    requests = prompts_of(config)
    texts = load_prompts(prompts)
    assert sorted(requests) == [(seat, round_) for seat in range(agents) for round_ in expected]
    for (_, round_), request in requests.items():
        assert read_prompt(texts, request.messages).task == expected[round_]


def test_own_work_is_listed_for_comparison_only_with_judge_own():
    seating = seat_debate(PROBLEM, DebateConfig(), 1)
    with_own = user(prompts_of(DebateConfig(num_rounds=1, judge_own=True))[0, 1])
    assert ", ".join(seating.handles[seat] for seat in seating.orders[0]) in with_own
    assert "Your own work is compared like that of the others." in with_own


@pytest.mark.parametrize("problem", [Problem("o", "Why?", kind="open"), Problem("o", "Why?", None)])
def test_open_problems_are_not_asked_for_a_box(problem):
    for request in prompts_of(DebateConfig(num_rounds=2), problem).values():
        text = "".join(message.content for message in request.messages)
        for solution in SOLUTIONS:
            text = text.replace(solution.strip(), "")
        assert "boxed" not in text


def test_a_choice_is_asked_for_by_letter_and_its_options_are_printed():
    problem = Problem("c", "1 + 1?", "B", kind="choice", choices=("A) 3", "B) 2 < 3", "C) <b>"))
    text = user(prompts_of(DebateConfig(num_rounds=1), problem)[0, 0])
    assert text.startswith("Problem:\n1 + 1?\n\nOptions:\nA. 3\nB. 2 < 3\nC. &lt;b>\n\nYour label")
    assert text.endswith("as \\boxed{letter}.")


def test_a_single_agent_reads_nothing_about_debates():
    request = prompts_of(DebateConfig(num_agents=1, num_rounds=1))[0, 0]
    text = "".join(m.content for m in request.messages).lower()
    assert not [word for word in ("debate", "label", "agent", "compar", "ballot") if word in text]
    assert request.stop == ("</solution>",)


def written(tmp_path: Path, change) -> str:
    path = tmp_path / "mine.toml"
    path.write_text(change((SHIPPED / "default.toml").read_text(encoding="utf-8")), encoding="utf-8")
    return str(path)


def test_a_copied_file_with_own_words_is_used(tmp_path):
    name = written(tmp_path, lambda text: text.replace("Problem:", "Task for $${you} {0}:"))
    text = user(prompts_of(DebateConfig(num_rounds=1, prompts=name))[0, 0])
    assert text.startswith("Task for ${you} {0}:\nTarget 19.")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda t: t.replace("$question", "$questoin"),
            r"mine\.toml: problem has an unknown placeholder \$questoin",
        ),
        (
            lambda t: t.replace("$instructions", "$name", 1),
            r"opening has an unknown placeholder \$name; it may have: .*\$handle",
        ),
        (lambda t: t.replace("\nstrip = true", ""), r"missing strip; copy them from .*default\.toml"),
        (lambda t: t + "\n[[[", r"mine\.toml: not a UTF-8 TOML file"),
        (lambda t: t.replace("<reply>", "Assistant:"), r"raw_reply must open with a tag .* or line_break"),
    ],
)
def test_a_faulty_file_names_file_and_key(tmp_path, change, message):
    with pytest.raises(PromptFileError, match=message):
        load_prompts(written(tmp_path, change))
