"""A server of chat completions in a thread, which answers each request by a function."""

import json
import threading
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Answer:
    """Status, body (JSON unless bytes) and headers; ``wait`` is waited for before anything is sent."""

    body: object = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    wait: threading.Event | None = None


@dataclass
class Asked:
    """One request: path, headers (lower case) and the JSON of its body."""

    path: str
    headers: dict[str, str]
    body: dict


def chat(text, *, finish="stop", usage=(11, 3), **more):
    """Return the JSON of a chat completion; ``more`` goes into its choice."""
    message = {"role": "assistant", "content": text} | more.pop("message", {})
    told = {"usage": {"prompt_tokens": usage[0], "completion_tokens": usage[1]}} if usage else {}
    return {"choices": [{"index": 0, "message": message, "finish_reason": finish, **more}], **told}


class ModelServer(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def __init__(self, answer: Callable[[Asked], Answer]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer, self.asked = answer, []
        self.url = f"http://127.0.0.1:{self.server_address[1]}/v1"

    def handle_error(self, request, client_address):
        """Say nothing of clients that hung up."""


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.do_POST()

    def do_POST(self):
        data = self.rfile.read(int(self.headers.get("content-length", 0)))
        headers = {k.lower(): v for k, v in self.headers.items()}
        asked = Asked(self.path, headers, json.loads(data or "{}"))
        self.server.asked.append(asked)
        answer = self.server.answer(asked)
        if answer.wait is not None:
            answer.wait.wait(20)
        body = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
        self.send_response(answer.status)
        for name, value in {"content-length": str(len(body)), **answer.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Write nothing to stderr."""


@contextmanager
def serving(answer: Callable[[Asked], Answer]):
    """Yield a server that answers each request by this function."""
    with ModelServer(answer) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
