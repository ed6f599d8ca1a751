"""A real pretrained model learns: SmolLM2-135M-Instruct from the package index, in miniature."""

import signal
import subprocess
import sys
import time

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from debate_rl.runs.checkpoint import checkpoints
from debate_rl.smollm2 import find_smollm2
from transcripts import RunStore

pytestmark = pytest.mark.slow
SMALL = (
    *("sft.limit=2", "sft.batch_size=4", "train.steps=2", "train.batch_size=1", "train.group_size=2"),
    *("train.save_every=1", "held_out.limit=1", "debate.max_tokens=32", "logging.progress=lines"),
)


@pytest.fixture(scope="module")
def model():
    try:
        return find_smollm2()
    except ValueError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def home(model, tmp_path_factory):
    return tmp_path_factory.mktemp("smollm2")


@pytest.fixture(scope="module")
def run(home):
    """The quick-start's run of two steps, killed after the first and resumed by the same command."""
    call = [sys.executable, "-m", "debate_rl", "quickstart", "--model", "smollm2", "--json", "f.json", *SMALL]
    debate = home / "runs/quickstart-smollm2-0/debate"
    with subprocess.Popen(call, cwd=home, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as killed:
        while not checkpoints(debate / "checkpoints") and killed.poll() is None:
            time.sleep(0.1)
        killed.kill()
        said = killed.communicate()[1].decode()
    assert killed.returncode == -signal.SIGKILL, said[-2000:]
    done = subprocess.run(call, cwd=home, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return debate


def test_it_solves_reads_judges_and_learns(run):
    assert (run.parent / "form/checkpoints").is_dir()
    with RunStore.open(run) as store:
        records = [record for _, record in store.records(tokens=True)]
    assert [record.step for record in records] == [0, 0, 1, 1]
    for record in records:
        assert {turn.id.round for turn in record.debate.turns} == {0, 1}
        prompt = record.debate.turns[0].completion.prompt_tokens
        assert prompt[0] != prompt[1]  # the template's first token, once


def test_the_exported_model_has_the_trained_weights(run, home, model):
    call = [sys.executable, "-m", "debate_rl", "export", str(run), "--out", str(home / "exported")]
    subprocess.run(call, check=True, capture_output=True)
    [*_, newest] = checkpoints(run / "checkpoints")
    trained, exported, start = (
        AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32)
        for path in (newest / "model", home / "exported", model)
    )
    ids = AutoTokenizer.from_pretrained(home / "exported")("2 + 2 =", return_tensors="pt").input_ids
    with torch.no_grad():
        logits = [one(ids).logits for one in (trained, exported, start)]
    assert torch.equal(logits[0], logits[1])
    assert not torch.equal(logits[1], logits[2])
