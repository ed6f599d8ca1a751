"""A real pretrained model learns: SmolLM2-135M-Instruct from the package index, in miniature."""

import subprocess
import sys

import pytest

from debate_rl.smollm2 import find_smollm2
from transcripts import RunStore

pytestmark = pytest.mark.slow
SMALL = (
    *("sft.limit=2", "sft.batch_size=4", "train.steps=1", "train.batch_size=2", "train.group_size=2"),
    *("held_out.limit=1", "debate.max_tokens=32", "logging.progress=lines"),
)


@pytest.fixture(scope="module")
def model():
    try:
        return find_smollm2()
    except ValueError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def run(model, tmp_path_factory):
    home = tmp_path_factory.mktemp("smollm2")
    call = [sys.executable, "-m", "debate_rl", "quickstart", "--model", "smollm2", "--json", "f.json", *SMALL]
    done = subprocess.run(call, cwd=home, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return home / "runs/quickstart-smollm2-0"


def test_it_solves_reads_judges_and_learns(run):
    assert (run / "form/checkpoints").is_dir()
    with RunStore.open(run / "debate") as store:
        debates = [record.debate for _, record in store.records(tokens=True)]
    assert len(debates) == 4
    for debate in debates:
        assert {turn.id.round for turn in debate.turns} == {0, 1}
        prompt = debate.turns[0].completion.prompt_tokens
        assert prompt[0] != prompt[1]  # the template's first token, once
