"""The names users call, exactly, and what importing them costs."""

import inspect
import subprocess
import sys

import debate

NAMES = {
    "Completion",
    "Debate",
    "DebateConfig",
    "Message",
    "Persona",
    "Policy",
    "Problem",
    "SampleRequest",
    "Turn",
    "Vote",
    "hold_debate",
    "parse_turn",
    "run_debates",
}


def test_the_public_names_are_these():
    assert set(debate.__all__) == NAMES
    assert all(hasattr(debate, name) for name in NAMES)


def test_signatures_of_the_two_runners():
    for runner in (debate.hold_debate, debate.run_debates):
        parameters = inspect.signature(runner).parameters
        assert list(parameters)[1:4] == ["policy", "config", "seed"]
        assert parameters["seed"].kind is inspect.Parameter.KEYWORD_ONLY
        assert all(
            p.default is not p.empty for name, p in parameters.items() if name not in list(parameters)[:4]
        )
    assert inspect.iscoroutinefunction(debate.hold_debate)
    assert not inspect.iscoroutinefunction(debate.run_debates)


def test_importing_debate_and_its_scripted_policy_loads_no_model_library():
    code = (
        "import sys, debate, debate.policies;"
        "print([m for m in ('torch', 'transformers', 'peft', 'vllm', 'numpy', 'scipy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
