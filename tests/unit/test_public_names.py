"""The table of docs/extending.md is the one list of public names; and what importing them costs."""

import ast
import inspect
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import debate

HOME = Path(__file__).parents[2]
LIBRARIES = ("debate", "envs", "rewards", "transcripts", "learner")
ROW = re.compile(r"^\| `([\w.]+)` \| ([\w, ]+) \|$", re.MULTILINE)
PUBLIC = {
    module: names.split(", ")
    for module, names in ROW.findall((HOME / "docs/extending.md").read_text("utf-8"))
}
PAGES = [HOME / "README.md", HOME / "CONTRIBUTING.md", *sorted((HOME / "docs").glob("*.md"))]
PROMISED = {
    "debate": "Problem Persona DebateConfig SampleRequest Message Completion Debate Turn Vote hold_debate "
    "run_debates parse_turn Policy",
    "rewards": "RewardConfig score_debate score_votes",
    "envs": "load_problems extract same_answer grade",
    "transcripts": "RunStore StepRow read_records Record FilterError turn_rows",
    "learner": "token_streams stream_advantages losses",
    "learner.losses": "LossInputs LossConfig LOSSES LossOutputs",
    "debate_rl.reports": "judgment_figures Figure",
}
"""What must not leave the list, whatever else joins it."""
OF_A_LIBRARY = {"debate_rl.verifiers_env": "verifiers", "debate_rl.trl_trainer": "trl"}
HEAVY = ("torch", "transformers", "peft", "vllm", "datasets", "debate_rl")
LIGHT = {
    "debate, debate.policies": (*HEAVY, "numpy", "scipy", "envs", "rewards"),
    "envs": (*HEAVY, "numpy", "sympy", "math_verify", "pyarrow", "rewards"),
    "rewards": (*HEAVY, "envs", "transcripts"),
    "transcripts": (*HEAVY, "learner"),
    "learner, learner.advantages": (*HEAVY, "transcripts"),
    "debate_rl.reports.report, debate_rl.reports.pages": ("matplotlib", "jinja2"),
}


def is_listed(module: str, name: str) -> bool:
    return name in PUBLIC.get(module, ()) or f"{module}.{name}" in PUBLIC


@pytest.mark.parametrize("module", PUBLIC)
def test_a_module_has_the_names_of_its_row(module):
    if module in OF_A_LIBRARY:
        pytest.importorskip(OF_A_LIBRARY[module])
    loaded, names = import_module(module), PUBLIC[module]
    assert [name for name in names if not hasattr(loaded, name)] == []
    assert names == sorted(set(names))
    if Path(loaded.__file__).name == "__init__.py":
        assert sorted(loaded.__all__) == names


def test_every_package_of_a_library_that_exports_names_has_a_row():
    files = [file for name in LIBRARIES for file in (HOME / name).rglob("__init__.py")]
    exporting = {file for file in files if "\n__all__ = " in file.read_text("utf-8")}
    assert exporting
    assert {".".join(file.parent.relative_to(HOME).parts) for file in exporting} <= set(PUBLIC)


def test_the_promised_names_are_on_the_list():
    assert [
        f"{module}.{name}"
        for module, names in PROMISED.items()
        for name in names.split()
        if name not in PUBLIC[module]
    ] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_documents_import_public_names_only(page):
    """Every import in a Python block, and every path into the application that the text spells out."""
    text = page.read_text("utf-8")
    for block in re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.ImportFrom) and node.module.startswith((*LIBRARIES, "debate_rl")):
                assert [n.name for n in node.names if not is_listed(node.module, n.name)] == [], node.module
    for path in re.findall(r"`(debate_rl(?:\.\w+)+)", text):
        assert path in PUBLIC or is_listed(*path.rpartition(".")[::2]), path


@pytest.mark.parametrize("modules", LIGHT)
def test_importing_it_loads_no_heavy_package_and_nothing_above_it(modules, tmp_path):
    code = f"import sys, {modules}; print([name for name in {LIGHT[modules]} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={"PYTHONPATH": str(HOME)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")


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
