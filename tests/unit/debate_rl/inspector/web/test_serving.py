"""Starting the server: what it says, and what it says when it cannot."""

import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import ExitStack
from pathlib import Path

import pytest

import debate_rl
from debate_rl.inspector.web import listen, need_packages, url_of

HOME = Path(debate_rl.__file__).parents[1]


def test_where_nobody_can_listen_is_one_line():
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match=rf"^port {port} is in use; choose another with --port"):
            listen("127.0.0.1", port)
    with pytest.raises(OSError, match=r"^cannot listen on 192\.0\.2\.1:0: "):
        listen("192.0.2.1", 0)


def test_a_missing_package_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(ImportError, match=r"'uvicorn' is not installed: pip install \"\.\[inspect\]\" in"):
        need_packages()


def test_addresses_have_brackets_and_tokens_where_due():
    assert url_of("::1", 80, "/", "t-_") == "http://[::1]:80/?token=t-_"


@pytest.mark.slow
@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_the_command_serves_until_it_is_interrupted(run, host):
    command = [sys.executable, "-W", "error::DeprecationWarning:inspector", "-m", "debate_rl.commands.main"]
    command += ["inspect", str(run), "--web", "--port", "0", "--host", host, "--filter", "winner:wrong"]
    env = os.environ | {"PYTHONPATH": str(HOME)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=env, cwd=run.parent, **pipes) as process, ExitStack() as stack:
        stack.callback(process.kill)
        found = re.match(r"Open (http://[^/]+)(/\S*) \(Ctrl-C stops the server\)", process.stdout.readline())
        base = re.sub(r"//[^:]+", "//127.0.0.1", found[1])
        assert found[2].startswith("/run/run/debates?filter=winner%3Awrong")
        assert ("token=" in found[2]) == (host == "0.0.0.0")
        if host == "0.0.0.0":
            with pytest.raises(urllib.error.HTTPError, match="401"):
                urllib.request.urlopen(base + "/run/run/")
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        assert 'data-page="debates"' in opener.open(base + found[2]).read().decode()
        process.send_signal(signal.SIGINT)
        assert (process.wait(20), process.stderr.read()) == (0, "")


@pytest.mark.slow
def test_pages_load_no_torch():
    code = (
        "import sys, debate_rl.inspector.web.app, debate_rl.inspector.web.rendering\n"
        "from debate_rl.inspector.web import warm\nwarm()\n"
        "print([name for name in ('torch', 'transformers', 'textual', 'matplotlib') if name in sys.modules])"
    )
    env = os.environ | {"PYTHONPATH": str(HOME)}
    assert subprocess.check_output([sys.executable, "-c", code], text=True, env=env) == "[]\n"
