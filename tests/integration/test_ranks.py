"""Several processes that learn together, by torchrun and gloo on a CPU: what one process does, they do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__)
pytestmark = pytest.mark.slow
ROUNDED = ("adapter, bfloat16", "products in bfloat16")


def torchrun(count: int, *command: object) -> list[str]:
    return [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(count), *map(str, command)]


@pytest.mark.parametrize("count", [2, 3])
def test_ranks_learn_what_one_process_does_and_take_up_its_state(count, tmp_path):
    out = tmp_path / "apart.json"
    done = subprocess.run(
        torchrun(count, HERE.with_name("rank_learner.py"), out),
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(HERE.parents[2])},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    for name, found in json.loads(out.read_text()).items():
        assert bool(found["updates"]) == (name != "not finite")
        bound = 1e-2 if name in ROUNDED else 1e-5
        assert found["weights"] < bound, name
        assert found["resumed"] < 10 * bound, name
        assert found["metrics"] < 100 * bound, name
