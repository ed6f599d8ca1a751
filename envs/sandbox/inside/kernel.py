"""Kernel interfaces for the box: namespaces, mounts, dropped privileges, a system call filter and processes.

This module runs under the sandbox's Python with only the standard library, on Linux on x86-64 and 64-bit ARM.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import signal
import struct
import tomllib
from contextlib import suppress

NEW_NS, NEW_CGROUP, NEW_UTS, NEW_IPC = 0x0002_0000, 0x0200_0000, 0x0400_0000, 0x0800_0000
NEW_USER, NEW_PID, NEW_NET, NEW_TIME = 0x1000_0000, 0x2000_0000, 0x4000_0000, 0x0000_0080
NAMESPACES = NEW_NS | NEW_CGROUP | NEW_UTS | NEW_IPC | NEW_USER | NEW_PID | NEW_NET

NOSUID, NODEV, NOEXEC, BIND, RECURSIVE, PRIVATE = 2, 4, 8, 0x1000, 0x4000, 1 << 18
DETACH = 2
_PARENT_DIES, _SET_DUMPABLE, _CAPBSET_DROP, _NO_NEW_PRIVS, _SECCOMP = 1, 4, 24, 38, 22

NEWEST = 462  # the newest system call that the filter knows; newer ones fail as if the kernel lacked them
with open(os.path.join(os.path.dirname(__file__), "system_calls.toml"), "rb") as _file:
    SYSTEM_CALLS: dict[str, dict[str, tuple[int, int]]] = tomllib.load(_file)
"""System calls that are denied, and system calls that are allowed only on the caller itself."""
_ARCHITECTURES = {"x86_64": (0, 0xC000_003E), "aarch64": (1, 0xC000_00B7)}
_CLONE, _CLONE3, _MMAP, _SETSOCKOPT = (56, 220), (435, 435), (9, 222), (54, 208)
_SOCKETS = (41, 198), (53, 199)  # socket and socketpair
_SHARED, _ANONYMOUS, _HUGE = 0x01, 0x20, 0x4_0000
_SEND_BUFFER = 7
_X32 = 0x4000_0000
_LOAD, _AND, _EQUAL, _ABOVE, _ANY_OF, _RETURN = 0x20, 0x54, 0x15, 0x25, 0x45, 0x06
_ALLOW, _KILL, _ERROR = 0x7FFF_0000, 0x8000_0000, 0x0005_0000
_NUMBER, _ARCH, _ARGUMENTS = 0, 4, (16, 24, 32, 40)

_libc = ctypes.CDLL(None, use_errno=True)


def _call(name: str, *arguments: object) -> None:
    if getattr(_libc, name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


def unshare(namespaces: int) -> None:
    """Move this process to new namespaces; a new pid namespace applies only to its children."""
    _call("unshare", namespaces)


def setns(descriptor: int, kind: int) -> None:
    """Enter a namespace; a pid namespace applies only to children of this process."""
    _call("setns", descriptor, kind)


def mount(source: str, target: str, kind: str | None, flags: int, data: str = "") -> None:
    """Mount a file system."""
    words = [word.encode() if word is not None else None for word in (source, target, kind)]
    _call("mount", *words, ctypes.c_ulong(flags), data.encode() or None)


def unmount(target: str) -> None:
    """Detach a mount; files that are open in the mount stay usable."""
    _call("umount2", target.encode(), DETACH)


def set_dumpable(value: bool) -> None:
    """Set whether processes of the same user may inspect this process, and whether it may dump core."""
    _call("prctl", _SET_DUMPABLE, int(value), 0, 0, 0)


def end_with_parent() -> None:
    """Make the kernel kill this process when its parent ends for any reason."""
    _call("prctl", _PARENT_DIES, int(signal.SIGKILL), 0, 0, 0)


def drop_privileges() -> None:
    """Drop every capability, for this process and for programs that it executes later."""
    _call("prctl", _NO_NEW_PRIVS, 1, 0, 0, 0)
    for capability in range(64):
        if _libc.prctl(_CAPBSET_DROP, capability, 0, 0, 0) != 0:
            break
    header, nothing = struct.pack("=Ii", 0x2008_0522, 0), bytes(24)
    _call("capset", header, nothing)


def filter_system_calls() -> None:
    """Deny the system calls of system_calls.toml from now on, in this process and its children."""
    code = system_call_filter(platform.machine())
    buffer = ctypes.create_string_buffer(code)
    # struct sock_fprog: a short, padding, a pointer
    program = struct.pack("=H6xQ", len(code) // 8, ctypes.addressof(buffer))
    _call("prctl", _SECCOMP, 2, program, 0, 0)


def system_call_filter(machine: str) -> bytes:
    """Return the filter as classic BPF; raise ValueError for a machine whose system calls are not known."""
    if machine not in _ARCHITECTURES:
        raise ValueError(f"there is no filter of system calls for {machine}")
    index, architecture = _ARCHITECTURES[machine]
    code = [_load(_ARCH), *_unless(_EQUAL, architecture, _KILL), _load(_NUMBER)]
    if machine == "x86_64":
        code += [_step(0x35, _X32, 0, 1), _result(_ERROR | errno.ENOSYS)]  # the x32 variant of every call
    code += _when(_ABOVE, NEWEST, _ERROR | errno.ENOSYS)
    code += _when(_EQUAL, _CLONE3[index], _ERROR | errno.ENOSYS)  # a filter cannot see its flags
    for numbers in SYSTEM_CALLS["denied"].values():
        if numbers[index] >= 0:
            code += _when(_EQUAL, numbers[index], _ERROR | errno.EPERM)
    for numbers in SYSTEM_CALLS["of_itself"].values():
        code += _of(numbers[index], _load(_ARGUMENTS[0]), *_unless(_EQUAL, 0, _ERROR | errno.EPERM))
    for numbers in _SOCKETS:
        code += _of(numbers[index], _load(_ARGUMENTS[0]), *_unless(_EQUAL, 1, _ERROR | errno.EAFNOSUPPORT))
    code += _of(_CLONE[index], _load(_ARGUMENTS[0]), *_when(_ANY_OF, NAMESPACES, _ERROR | errno.EPERM))
    code += _of(_SETSOCKOPT[index], _load(_ARGUMENTS[2]), *_when(_EQUAL, _SEND_BUFFER, _ERROR | errno.EPERM))
    code += _of(  # memory that the limits would miss: shared anonymous memory and huge pages
        _MMAP[index],
        _load(_ARGUMENTS[3]),
        *_when(_ANY_OF, _HUGE, _ERROR | errno.ENOMEM),
        _step(_AND, _SHARED | _ANONYMOUS, 0, 0),
        *_when(_EQUAL, _SHARED | _ANONYMOUS, _ERROR | errno.EPERM),
    )
    return b"".join([*code, _result(_ALLOW)])


def _of(number: int, *steps: bytes) -> list[bytes]:
    """Return the steps for one system call, which is allowed if none of the steps returns."""
    return [_step(_EQUAL, number, 0, len(steps) + 1), *steps, _result(_ALLOW)]


def _step(code: int, value: int, when: int, otherwise: int) -> bytes:
    return struct.pack("=HBBI", code, when, otherwise, value)


def _load(offset: int) -> bytes:
    return _step(_LOAD, offset, 0, 0)


def _result(value: int) -> bytes:
    return _step(_RETURN, value, 0, 0)


def _when(test: int, value: int, result: int) -> list[bytes]:
    return [_step(test, value, 0, 1), _result(result)]


def _unless(test: int, value: int, result: int) -> list[bytes]:
    return [_step(test, value, 1, 0), _result(result)]


PAGE = os.sysconf("SC_PAGE_SIZE")


def send(pid: int, number: signal.Signals) -> None:
    """Send a signal to a process, or to all permitted ones if ``pid`` is -1; do nothing if it is gone."""
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


class Processes:
    """The processes of a pid namespace, from the /proc that was mounted for this namespace."""

    def __init__(self, proc: int) -> None:
        self._proc = proc

    def others(self, runner: int) -> list[int]:
        """Return the pids of all living processes except the first process and the runner."""
        return [pid for pid in self._all() if pid not in (1, runner) and not self._is_dead(pid)]

    def signal_all(self, runner: int, number: signal.Signals) -> None:
        """Send a signal to every process except this one, in one call."""
        send(-1, number)

    def size(self, pid: int | str) -> int:
        """Return the resident memory of a process in bytes, including shared memory; 0 if it is gone."""
        if not (pages := self._number(f"{pid}/statm", 1)):  # other threads may outlive the first one
            pages = max((self._number(f"{pid}/task/{t}/statm", 1) for t in self._threads(pid)), default=0)
        return PAGE * pages

    def address_space(self) -> int:
        """Return the size of this process's address space in bytes."""
        return PAGE * self._number("self/statm", 0)

    def share(self, pid: int) -> int:
        """Return the proportional set size of a process in bytes: shared memory counts in part."""
        for line in self._read(f"{pid}/smaps_rollup").splitlines():
            if line.startswith(b"Pss:"):
                return int(line.split()[1]) * 1024
        return self.size(pid)

    def sockets(self) -> int:
        """Return the number of sockets in this process's network namespace."""
        return self._number("self/net/sockstat", 2)

    def waited(self, pid: int) -> float:
        """Return the seconds that a process has waited for a core."""
        return self._number(f"{pid}/schedstat", 1) / 1e9

    def _number(self, name: str, index: int) -> int:
        """Return one word of a file as a number; 0 if the process is gone."""
        words = self._read(name).split()
        return int(words[index]) if len(words) > index else 0

    def _all(self) -> list[int]:
        return [int(name) for name in os.listdir(self._proc) if name.isdigit()]

    def _is_dead(self, pid: int) -> bool:
        """Return whether all threads of a process have ended, not only the first thread."""
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
    """The descendants of this process, from the machine's own /proc; used without a namespace."""

    def __init__(self) -> None:
        super().__init__(os.open("/proc", os.O_RDONLY | os.O_DIRECTORY))

    def others(self, runner: int) -> list[int]:
        """Return the pids of all living descendants of this process except the runner."""
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
    """The processes on a machine without /proc (macOS), where only the runner is known."""

    def others(self, runner: int) -> list[int]:
        """Return an empty list."""
        return []

    def signal_all(self, runner: int, number: signal.Signals) -> None:
        """Send a signal to the runner."""
        send(runner, number)
