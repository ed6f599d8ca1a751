"""The attacks of tests/integration/sandbox_attacks.py, by root and by an ordinary user."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from envs.sandbox import Sandbox, SandboxRefused

from ..integration.conftest import ENVIRONMENT

pytestmark = pytest.mark.slow
PROJECT = Path(__file__).parents[2]
SCRIPT = PROJECT / "tests" / "integration" / "sandbox_attacks.py"
NOBODY = 65534
DROP = "import os, sys; os.setgroups([]); os.setgid({0}); os.setuid({0}); os.execv(sys.argv[1], sys.argv[1:])"


def as_nobody(command):
    """Return the command as an ordinary user's, who may enter Python's and the project's folders."""
    python = sys.base_prefix
    box = ["bwrap", "--dev-bind", "/", "/", "--cap-add", "ALL", "--chdir", "/"]
    shut = [
        path for path in (python, str(PROJECT), os.path.realpath(sys.prefix)) if path.startswith("/root/")
    ]
    if shut:
        box += ["--perms", "0755", "--tmpfs", "/root"]
    for path in shut:
        for parent in reversed(Path(path).parents[:-2]):
            box += ["--perms", "0755", "--dir", str(parent)]
        box += ["--ro-bind", path, path]
    return [*box, "--", os.path.realpath(sys.executable), "-c", DROP.format(NOBODY), *command]


@pytest.mark.parametrize("user", ["this user", "nobody"])
def test_nothing_gets_through_and_nothing_stays_behind(user, tmp_path):
    try:
        with Sandbox() as sandbox:
            sandbox.start()
    except SandboxRefused as refused:
        pytest.skip(str(refused))
    command = [sys.executable, str(SCRIPT)]
    if user == "nobody":
        if os.getuid() != 0 or shutil.which("bwrap") is None:
            pytest.skip("only root can become another user")
        command = as_nobody(command)
    environment = ENVIRONMENT | {"PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd="/", check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert len(found) > 60
    assert {name: wrong for name, wrong in found.items() if wrong} == {}
