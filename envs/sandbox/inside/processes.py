"""What a guard sees of the processes of its session: who they are, and what memory they hold."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress

PAGE = os.sysconf("SC_PAGE_SIZE")


def send(pid: int, number: signal.Signals) -> None:
    """Send a signal to a process, or of -1 to all that may get it; of one that is gone, nothing."""
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


class Processes:
    """The processes of a pid namespace, by the /proc that was mounted for it."""

    def __init__(self, proc: int) -> None:
        self._proc = proc

    def others(self, runner: int) -> list[int]:
        """Return every living process but the first one and the runner."""
        return [pid for pid in self._all() if pid not in (1, runner) and not self._is_dead(pid)]

    def signal_all(self, runner: int, number: signal.Signals) -> None:
        """Send a signal to every process but this, in one call."""
        send(-1, number)

    def size(self, pid: int | str) -> int:
        """Return the bytes in memory of a process, shared ones included; 0 when it is gone."""
        pages = self._pages(str(pid))
        if not pages:  # its first thread has ended, and others may have not
            pages = max((self._pages(f"{pid}/task/{thread}") for thread in self._threads(pid)), default=0)
        return pages * PAGE

    def _pages(self, task: str) -> int:
        words = self._read(f"{task}/statm").split()
        return int(words[1]) if len(words) > 1 else 0

    def address_space(self) -> int:
        """Return the bytes of this process's address space."""
        words = self._read("self/statm").split()
        return int(words[0]) * PAGE if words else 0

    def share(self, pid: int) -> int:
        """Return the bytes in memory of a process, with its part of what it shares with others."""
        for line in self._read(f"{pid}/smaps_rollup").splitlines():
            if line.startswith(b"Pss:"):
                return int(line.split()[1]) * 1024
        return self.size(pid)

    def sockets(self) -> int:
        """Return how many sockets there are in this process's network namespace."""
        words = self._read("self/net/sockstat").split()
        return int(words[2]) if len(words) > 2 else 0

    def waited(self, pid: int) -> float:
        """Return the seconds for which a process was ready and had no core."""
        words = self._read(f"{pid}/schedstat").split()
        return int(words[1]) / 1e9 if len(words) > 1 else 0.0

    def _all(self) -> list[int]:
        return [int(name) for name in os.listdir(self._proc) if name.isdigit()]

    def _is_dead(self, pid: int) -> bool:
        """Return whether all threads have ended; the first one may long have."""
        stat = self._stat(pid)
        return not stat or (stat[0] in (b"Z", b"X") and int(stat[17]) <= 1)

    def _threads(self, pid: int | str) -> list[str]:
        with suppress(OSError):
            folder = os.open(f"{pid}/task", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self._proc)
            try:
                return os.listdir(folder)
            finally:
                os.close(folder)
        return []

    def _stat(self, pid: int) -> list[bytes]:
        return self._read(f"{pid}/stat").rpartition(b")")[2].split()

    def _read(self, name: str) -> bytes:
        with suppress(OSError):
            file = os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._proc)
            try:
                return os.read(file, 1 << 16)
            finally:
                os.close(file)
        return b""


class Descendants(Processes):
    """Without a namespace: what has come of this process, by the machine's own /proc."""

    def __init__(self) -> None:
        super().__init__(os.open("/proc", os.O_RDONLY | os.O_DIRECTORY))

    def others(self, runner: int) -> list[int]:
        """Return every living descendant of this process but the runner."""
        parents = {pid: stat[1] for pid in self._all() if len(stat := self._stat(pid)) > 1}
        found, new = set[int](), {os.getpid()}
        while new:
            new = {pid for pid, parent in parents.items() if int(parent) in new} - found
            found |= new
        return [pid for pid in found - {runner} if not self._is_dead(pid)]

    def signal_all(self, runner: int, number: signal.Signals) -> None:
        """Send a signal to the runner and to every descendant of this process, one by one."""
        for pid in (runner, *self.others(runner)):
            send(pid, number)


class Unseen(Processes):
    """Where there is no /proc (macOS): nothing is seen."""

    def others(self, runner: int) -> list[int]:
        """Return nothing."""
        return []

    def signal_all(self, runner: int, number: signal.Signals) -> None:
        """Send a signal to the runner."""
        send(runner, number)


def plain_processes() -> Processes:
    """Return what is seen without a box."""
    return Descendants() if sys.platform == "linux" else Unseen(-1)
