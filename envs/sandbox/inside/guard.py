"""The guard, the first process of a session: it builds the session's box and supervises the programs in it.

The guard is process 1 of the session's own pid namespace. So programs cannot signal the guard, and all
processes of the session end with it.
"""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import socket
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from . import kernel, program
from .kernel import Processes, send
from .program import read_output

MB = 1 << 20
TICK_S = 0.02  # interval between checks of time and memory
STRETCH = 3  # maximum wall time of a program that waits for a core, as a multiple of its time limit
OPEN_FILES = 256
LONGEST_REPORT = 1 << 16
SOCKET = 300 << 10  # bytes that the kernel may buffer for a socket (sent but not read)
ROUNDS = 1000  # maximum number of searches for processes that must still be ended
NOBODY = 65534
SLICE = 1 << 16
WORK = 3  # file descriptor of the runner's socket to its guard


@dataclass(frozen=True)
class Report:
    """The way in which a program ended, and whether its definitions are still there (``lives``)."""

    status: str
    error: str
    lives: bool = True


def isolate(limits: dict[str, Any]) -> Processes:
    """Move this process into its own namespaces, without privileges; return the processes there."""
    kernel.unshare(kernel.NEW_NS | kernel.NEW_IPC | kernel.NEW_NET | kernel.NEW_UTS)
    kernel.mount("none", "/", None, kernel.RECURSIVE | kernel.PRIVATE)
    flags = kernel.NOSUID | kernel.NODEV
    kernel.mount("tmpfs", "/mnt", "tmpfs", flags, f"mode=0755,nr_inodes=4096,size={limits['file_mb']}m")
    for name, target in (("tmp", "/tmp"), ("shm", "/dev/shm")):
        os.mkdir(f"/mnt/{name}")
        os.chmod(f"/mnt/{name}", 0o1777)
        kernel.mount(f"/mnt/{name}", target, None, kernel.BIND)
    kernel.unmount("/mnt")
    kernel.mount("proc", "/proc", "proc", flags | kernel.NOEXEC)
    proc = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY)  # programs have none
    kernel.unmount("/proc")
    kernel.unmount("/proc")  # the /proc of the outer box
    if os.getuid() == 0:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
        kernel.set_dumpable(True)  # needed to write the uid and gid maps
    user, group = os.getuid(), os.getgid()
    kernel.unshare(kernel.NEW_USER)  # processes are counted and limited per user namespace
    maps = {"setgroups": "deny", "uid_map": f"{user} {user} 1", "gid_map": f"{group} {group} 1"}
    for name, text in maps.items():
        with open(os.open(f"self/{name}", os.O_WRONLY, dir_fd=proc), "wb", buffering=0) as file:
            file.write(text.encode())
    kernel.drop_privileges()
    kernel.set_dumpable(False)
    kernel.filter_system_calls()
    os.chdir("/tmp")
    return Processes(proc)


class Guard:
    """One session: the guard starts its runner and limits its time and memory."""

    def __init__(
        self, host: socket.socket, output: int, limits: dict[str, Any], processes: Processes
    ) -> None:
        self._host, self._output, self._limits, self._processes = host, output, limits, processes
        self._base = processes.size("self")
        self._status: int | None = None  # the runner's exit status, once it has ended
        self._runner, self._work = self._start()

    def _start(self) -> tuple[int, socket.socket]:
        ours, theirs = socket.socketpair()
        pid = os.fork()
        if pid == 0:
            try:
                if self._limits["boxed"]:
                    kernel.set_dumpable(True)  # so that the guard can measure shared memory
                limit(self._limits, self._processes.address_space())
                become_runner(theirs.fileno(), self._output)
                program.serve(socket.socket(fileno=WORK), 1)
            finally:
                os._exit(0)
        theirs.close()
        ours.setblocking(False)
        return pid, ours

    def serve(self) -> None:
        """Run the host's programs until the host closes the connection or the runner is dead."""
        while self._status is None and (code := program.receive(self._host)) is not None:
            os.ftruncate(self._output, 0)
            began = time.monotonic()
            report = self._run(code.encode())
            seconds = time.monotonic() - began
            if self._status is None and report.lives:
                self._quiet()
            else:
                self._kill_all()
            answer = {
                "status": report.status,
                "error": report.error,
                "seconds": round(seconds, 6),
                "alive": self._status is None,
                "output": read_output(self._output, self._limits["output_chars"]),
            }
            with suppress(OSError):  # the host has left
                self._host.sendall(json.dumps(answer).encode() + b"\n")
        self._kill_all()

    def _run(self, code: bytes) -> Report:
        with suppress(BlockingIOError):
            while self._work.recv(SLICE):  # discard messages that the previous program faked
                pass
        if self._status is None:
            send(self._runner, signal.SIGCONT)
        left, said = len(code).to_bytes(4) + code, b""
        began, waited = time.monotonic(), self._processes.waited(self._runner)
        while True:
            ready, room, _ = select.select([self._host, self._work], [self._work] if left else [], [], TICK_S)
            if self._host in ready:
                return Report("died", "the host has left", lives=False)
            try:
                if room:
                    left = left[self._work.send(left[:SLICE]) :]
                if self._work in ready:
                    part = self._work.recv(SLICE)
                    said += part
                    if not part:
                        return self._ended()
            except OSError:
                return self._ended()
            if b"\n" in said or len(said) > LONGEST_REPORT:
                return read_report(said)
            self._reap()
            if self._status is not None:
                return self._ended()
            if report := self._over(time.monotonic() - began, waited):
                return report

    def _over(self, wall: float, waited: float) -> Report | None:
        """Return a report if the program exceeds its time or memory limit; else None."""
        seconds, memory = self._limits["seconds"], self._limits["memory_mb"]
        if wall > seconds:
            own = wall - (self._processes.waited(self._runner) - waited)
            if own > seconds or wall > STRETCH * seconds:
                return Report("timeout", f"TimeoutError: took longer than {seconds:g} seconds", lives=False)
        if self._memory() > memory * MB:
            return Report("memory", f"MemoryError: took more than {memory} MB", lives=False)
        return None

    def _memory(self) -> int:
        """Return the bytes of memory that the session's processes use beyond the initial size."""
        others = self._processes.others(self._runner)
        if not others:
            return 0  # the runner's own memory is limited by its address space
        pids, sockets = [self._runner, *others], SOCKET * self._processes.sockets()
        total = sum(max(self._processes.size(pid) - self._base, 0) for pid in pids)
        if total + sockets > self._limits["memory_mb"] * MB:
            return sum(map(self._processes.share, pids)) + sockets
        return total + sockets

    def _ended(self) -> Report:
        """Return the report of a runner that is dead, or that has closed its socket."""
        deadline = time.monotonic() + 1.0
        while self._status is None and time.monotonic() < deadline:
            self._reap()
            time.sleep(0.001)
        if self._status is None:
            return Report("died", "the program closed what it was run through", lives=False)
        code = os.waitstatus_to_exitcode(self._status)
        if code >= 0:
            return Report("died", f"the process ended with exit code {code}", lives=False)
        return Report("died", f"the process was ended by signal {-code}", lives=False)

    def _quiet(self) -> None:
        """Stop the runner until its next program, and kill every other process."""
        self._processes.signal_all(self._runner, signal.SIGSTOP)  # a stopped process cannot fork
        for _ in range(ROUNDS):
            if not self._kill_others():
                return
        self._kill_all()

    def _kill_others(self) -> bool:
        """Kill every process except this one and the runner; return whether there were any."""
        others = self._processes.others(self._runner)
        for pid in others:
            send(pid, signal.SIGKILL)
        self._reap()
        return bool(others)

    def _kill_all(self) -> None:
        """Kill every process of the session except this one, and wait until all are gone."""
        for _ in range(ROUNDS):
            self._processes.signal_all(self._runner, signal.SIGKILL)
            if not self._kill_others():
                break
        with suppress(ChildProcessError):
            while True:
                self._note(*os.waitpid(-1, 0))

    def _reap(self) -> None:
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                self._note(*ended)

    def _note(self, pid: int, status: int) -> None:
        if pid == self._runner:
            self._status = status


def read_report(said: bytes) -> Report:
    """Return a runner's report; a program can fake it, so invalid reports are replaced and long ones cut."""
    try:
        told = json.loads(said.partition(b"\n")[0])
        status, error = told["status"], told["error"]
    except (ValueError, TypeError, LookupError, RecursionError):
        status, error = "", ""
    if status not in ("ok", "error", "memory") or not isinstance(error, str):
        return Report("error", "the program spoiled its own report")
    text = error.encode("utf-8", "backslashreplace").decode()  # escape lone surrogates, as in the output
    return Report(status, text[: program.LONGEST_ERROR])


def limit(limits: dict[str, Any], address_space: int) -> None:
    """Set resource limits of this process and its children."""
    file = limits["file_mb"] * MB
    bounds = {
        "RLIMIT_AS": address_space + limits["memory_mb"] * MB,
        "RLIMIT_NPROC": limits["processes"] + 2 if limits["boxed"] else None,  # + guard and runner
        "RLIMIT_FSIZE": file,
        "RLIMIT_NOFILE": OPEN_FILES,
        "RLIMIT_CORE": 1,  # with 0, the kernel would still start a program that collects core dumps
        "RLIMIT_MEMLOCK": 0,
        "RLIMIT_MSGQUEUE": 0,
        "RLIMIT_SIGPENDING": 256,
    }
    for name, value in bounds.items():
        number = getattr(resource, name, None)
        if number is not None and value is not None:
            most = resource.getrlimit(number)[1]
            value = value if most == resource.RLIM_INFINITY else min(value, most)
            resource.setrlimit(number, (value, value))


def become_runner(work: int, output: int) -> None:
    """Keep four open files: an empty input, the output twice, and the socket to the guard."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    kept = [os.dup(one) for one in (nothing, output, output, work)]
    high = [os.dup2(one, 100 + index) for index, one in enumerate(kept)]
    for index, one in enumerate(high):
        os.dup2(one, index)
    os.closerange(len(high), 1 << 20)
    for number in (signal.SIGINT, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
