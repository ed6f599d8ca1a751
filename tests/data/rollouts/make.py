"""Make the files of this folder with verifiers 0.4 and inspect-ai, in an environment that has both.

make engines; HOME=/tmp .venv-verifiers/bin/python tests/data/rollouts/make.py FOLDER

Three responses to each of two sums: traces.jsonl by vf-eval, sums.eval by Inspect AI. Its sums.json, which is
much longer, has two responses to the first sum.
"""

# pyright: basic, reportMissingImports=false

import json
import os
import subprocess
import sys
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import ClassVar

SAID = {
    "What is 3 + 4?": ("7", ["It is 7.", "It is 12.", "<think>3 and 4</think>It is 7."]),
    "What is 2 + 6?": ("8", ["It is 12.", "It is 8 & not <b>12</b>.", "It is 12."]),
}
TASKSET = """
import httpx
import verifiers.v1 as vf
from verifiers.v1.runtimes import ProgramResult

__all__ = ["DirectHarness", "SumTaskset"]


class SumData(vf.TaskData):
    answer: str


class SumTask(vf.Task[SumData]):
    @vf.reward
    async def says_it(self, trace: vf.Trace) -> float:
        return float(self.data.answer in trace.last_reply)


class SumTaskset(vf.Taskset[SumTask, vf.TasksetConfig]):
    def load(self):
        for question, answer in (("What is 3 + 4?", "7"), ("What is 2 + 6?", "8")):
            yield SumTask(SumData(prompt=question, system_prompt="Be brief.", answer=answer))


class DirectHarness(vf.Harness[vf.HarnessConfig]):
    APPENDS_SYSTEM_PROMPT = True
    EXECUTES_CODE = NEEDS_CONTAINER = False

    async def launch(self, ctx, trace, runtime, endpoint, secret, mcp_urls, data):
        said = {"system": data.system_prompt, "user": data.prompt}
        messages = [{"role": role, "content": text} for role, text in said.items()]
        async with httpx.AsyncClient() as client:
            head = {"Authorization": f"Bearer {secret}"}
            body = {"model": ctx.model, "messages": messages}
            reply = await client.post(f"{endpoint}/chat/completions", json=body, headers=head)
        return ProgramResult(0 if reply.is_success else 1, "", "")
"""


class Server(BaseHTTPRequestHandler):
    """Answers like a server of OpenAI's API, with the next response to the question."""

    asked: ClassVar[Counter[str]] = Counter()

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        question = body["messages"][-1]["content"]
        text = SAID[question][1][self.asked[question] % 3]
        self.asked[question] += 1
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14}
        head = {"id": "c", "object": "chat.completion", "created": 0, "model": "tiny"}
        data = json.dumps(head | {"choices": [choice], "usage": usage}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Stay silent."""


def by_verifiers(folder: Path) -> None:
    (folder / "sum_tasks.py").write_text(TASKSET)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    Thread(target=server.serve_forever, daemon=True).start()
    words = ["sum-tasks", "-m", "tiny", "--no-push", "-n", "2", "-r", "3", "-c", "1"]
    words += ["--env.agent.harness.id", "sum-tasks", "--env.agent.runtime.type", "subprocess"]
    words += ["--client.base-url", f"http://127.0.0.1:{server.server_port}/v1"]
    program = Path(sys.executable).with_name("vf-eval")
    own = os.environ | {"PYTHONPATH": str(folder), "OPENAI_API_KEY": "none"}
    subprocess.run([program, *words], cwd=folder, env=own, check=True, stdout=subprocess.DEVNULL)
    [traces] = folder.glob("outputs/*/traces.jsonl")
    traces.rename(folder / "traces.jsonl")


def by_inspect(folder: Path) -> None:
    from inspect_ai import Task, eval
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ModelOutput
    from inspect_ai.scorer import includes
    from inspect_ai.solver import solver

    @solver
    def replies():
        async def solve(state, generate):
            text = SAID[state.input_text][1][state.epoch - 1]
            state.output = ModelOutput.from_content("none", text)
            state.messages.append(state.output.message)
            return state

        return solve

    samples = [Sample(id=f"sum-{answer}", input=asked, target=answer) for asked, (answer, _) in SAID.items()]
    for form, problems, epochs in (("eval", 2, 3), ("json", 1, 2)):
        of = {"dataset": samples[:problems], "epochs": epochs, "name": "sums"}
        task = Task(solver=[replies()], scorer=includes(), **of)
        settings = {"model": "mockllm/model", "log_dir": str(folder), "log_format": form}
        [log] = eval(task, display="none", max_samples=1, log_samples=True, **settings)
        Path(log.location.removeprefix("file://")).rename(folder / f"sums.{form}")


if __name__ == "__main__":
    by_verifiers(Path(sys.argv[1]))
    by_inspect(Path(sys.argv[1]))
