"""The outer box: bubblewrap around the process that forks the sessions (none in unsafe mode)."""

from __future__ import annotations

import json
import os
import platform
import shutil
import socket
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path

PACKAGES = ("sympy", "mpmath", "numpy", "numpy.libs", "scipy", "scipy.libs", "networkx")
"""Packages that programs can import in addition to the standard library."""
_SCIPY = ("scipy.special", "scipy.optimize", "scipy.integrate", "scipy.linalg")
PRELOADED = ("sympy", "numpy", "networkx", *_SCIPY)
"""Modules that a session has imported before its first program."""
OLDEST_KERNEL = (5, 14)  # the first kernel that counts processes separately for each user namespace
SYSTEM_LIBRARIES = ("/usr/lib", "/usr/lib64", "/lib", "/lib64")
"""Folders of libraries; of the first, only this machine's architecture folder is used, if there is one."""
DEVICES = ("null", "full", "random", "urandom")  # not zero: memory mapped from it need not be a process's
CAPABILITIES = ("CAP_SYS_ADMIN", "CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP")
"""Capabilities of the process that forks the sessions; a session has none."""
SETTINGS = {
    "/proc/sys/kernel/unprivileged_userns_clone": ("0", "1"),
    "/proc/sys/kernel/apparmor_restrict_unprivileged_userns": ("1", "0"),
    "/proc/sys/user/max_user_namespaces": ("0", "10000"),
}
"""Kernel settings, each with a value that forbids users to create namespaces, and one that allows it."""
ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "HOME": "/tmp",
    "TMPDIR": "/tmp",
    "LANG": "C.UTF-8",
    "PYTHONHASHSEED": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
}
START = "import sys; sys.path += {path}; from inside.zygote import main; main({words})"
_INSIDE = Path(__file__).parent / "inside"


@dataclass(frozen=True, slots=True)
class Limits:
    """Resource limits of a program or a session."""

    seconds: float = 10.0
    """Wall time of one program in seconds, without the time that it waits for a core."""
    memory_mb: int = 1024
    """Memory of all processes of a session together, without files, in MB."""
    processes: int = 32
    """Number of processes and threads that a session may start in addition to its own."""
    file_mb: int = 64
    """Size in MB of all files of a session together, and of a program's output; both are held in memory."""
    output_chars: int = 8192
    """Maximum characters of a program's output; the middle of longer output is left out."""


class SandboxRefused(ValueError):
    """The machine cannot run a sandbox; the message says what to install or to set."""


def check_system() -> None:
    """Raise SandboxRefused if bubblewrap cannot run here, as far as this is visible without a trial."""
    if sys.platform != "linux":
        raise SandboxRefused(
            f"the sandbox needs Linux: {platform.system()} has no namespaces for bubblewrap to make; run in "
            "a Linux virtual machine, or set sandbox.unsafe = true for programs that you trust"
        )
    if platform.machine() not in ("x86_64", "aarch64"):
        raise SandboxRefused(f"the sandbox has no filter of system calls for {platform.machine()}")
    release = tuple(int(part) for part in platform.release().split("-")[0].split(".")[:2] if part.isdigit())
    if release < OLDEST_KERNEL:
        raise SandboxRefused(f"the sandbox needs Linux 5.14 or later; this is {platform.release()}")
    if shutil.which("bwrap") is None:
        install = "apt install bubblewrap (dnf, pacman, zypper: the same name)"
        raise SandboxRefused(f"the sandbox needs bubblewrap: {install}")


def refusal(reason: str) -> SandboxRefused:
    """Return the error for a box that could not be created, with the kernel settings that may forbid it."""
    lines = [line for line in reason.strip().splitlines() if line]
    hints: list[str] = []
    for path, (forbids, allows) in SETTINGS.items():
        with suppress(OSError):
            if Path(path).read_text().strip() == forbids:
                name = path.removeprefix("/proc/sys/").replace("/", ".")
                hints.append(f"set {name} = {allows} with sysctl")
    hints = hints or [
        "in a container, allow namespaces (docker run --privileged, or --security-opt "
        "seccomp=unconfined with --security-opt systempaths=unconfined)"
    ]
    said = lines[-1] if lines else "it ended without a word"
    return SandboxRefused(f"the sandbox cannot run: {said}; {', '.join(hints)}")


class Zygote:
    """The process that forks the sessions, and the connection to this process."""

    def __init__(self, limits: Limits, *, unsafe: bool, module: str | None = None) -> None:
        self._ours, theirs = socket.socketpair()
        self._ours.settimeout(10.0)
        host = os.pidfd_open(os.getpid()) if hasattr(os, "pidfd_open") else -1
        words = asdict(limits) | {"boxed": not unsafe, "control": theirs.fileno(), "host": host}
        words["modules"] = [name for name in PRELOADED if find_spec(name.partition(".")[0]) is not None]
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115, lives as long as the process
        try:
            self._process = subprocess.Popen(
                plain_command(words) if unsafe else box_command(words, module),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._errors,
                env=ENVIRONMENT,
                cwd=tempfile.gettempdir() if unsafe else "/",
                pass_fds=[theirs.fileno(), *([host] if host >= 0 else [])],
                start_new_session=True,
            )
        finally:
            theirs.close()
            if host >= 0:
                os.close(host)

    def is_alive(self) -> bool:
        """Return whether the process is running."""
        return self._process.poll() is None

    def ask(self, session: socket.socket) -> None:
        """Request a session that communicates through this socket."""
        socket.send_fds(self._ours, [b"s"], [session.fileno()])

    def complaint(self) -> str:
        """Return the end of the process's standard error."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(1.0)
        size = os.fstat(self._errors.fileno()).st_size
        return os.pread(self._errors.fileno(), 4096, max(size - 4096, 0)).decode("utf-8", "replace")

    def close(self) -> None:
        """End the process and all of its sessions."""
        with suppress(OSError):
            self._ours.shutdown(socket.SHUT_RDWR)
        self._ours.close()
        try:
            self._process.wait(5.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._errors.close()


def plain_command(words: Mapping[str, object]) -> list[str]:
    """Return the command that starts the process without a box."""
    homes = dict.fromkeys(str(path.parent) for path in _packages().values())
    return [_python(), *_python_words([str(_INSIDE.parent), *homes], words)]


def box_command(words: Mapping[str, object], module: str | None = None) -> list[str]:
    """Return the command that starts the process in a box that has only Python and the packages.

    With ``module`` the box also has the folder in which that module is installed.
    """
    command = ["bwrap", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"]
    command += ["--unshare-cgroup-try", "--hostname", "sandbox", "--new-session", "--as-pid-1", "--clearenv"]
    if os.getuid() != 0:  # for root, a user namespace would run the programs as root
        command.append("--unshare-user")
    command += ["--cap-drop", "ALL", *_each("--cap-add", CAPABILITIES)]
    command += [word for name, value in ENVIRONMENT.items() for word in ("--setenv", name, value)]
    command += [*_system_files(), *_python_files()]
    for name, path in _packages().items():
        command += _shown(str(path), f"/packages/{name}")
    if module is not None and (spec := find_spec(module)) and spec.origin:
        command += _shown(str(Path(spec.origin).parents[1]), "/installed")
    command += [*_shown(str(_INSIDE), "/sandbox/inside"), "--proc", "/proc", "--tmpfs", "/dev"]
    for device in DEVICES:
        command += ["--dev-bind", f"/dev/{device}", f"/dev/{device}"]
    command += [*_each("--dir", ("/dev/shm", "/tmp", "/mnt")), *_each("--remount-ro", ("/dev", "/"))]
    return [
        *command,
        "--chdir",
        "/tmp",
        "--",
        _python(),
        *_python_words(["/sandbox", "/packages", "/installed"], words),
    ]


def _each(option: str, values: Sequence[str]) -> list[str]:
    return [word for value in values for word in (option, value)]


def _shown(source: str, target: str) -> list[str]:
    """Return bubblewrap arguments that mount a file or folder read-only, with parents open to any user."""
    folders = [str(folder) for folder in reversed(Path(target).parents)][1:]
    made = [word for one in folders for word in ("--perms", "0755", "--dir", one)]
    return [*made, "--ro-bind", source, target]


def _python() -> str:
    return os.path.realpath(getattr(sys, "_base_executable", sys.executable))


def _python_words(path: list[str], words: Mapping[str, object]) -> list[str]:
    return ["-s", "-S", "-P", "-c", START.format(path=path, words=repr(json.dumps(dict(words))))]


def _system_files() -> Iterator[str]:
    own = f"/usr/lib/{sysconfig.get_config_var('MULTIARCH') or 'none'}"
    for folder in SYSTEM_LIBRARIES:
        name = own if folder == "/usr/lib" and os.path.isdir(own) else folder
        if os.path.islink(name):
            yield from ("--symlink", os.readlink(name), name)
        elif os.path.isdir(name):
            yield from _shown(name, name)
    if os.path.isfile("/etc/ld.so.cache"):
        yield from _shown("/etc/ld.so.cache", "/etc/ld.so.cache")


def _python_files() -> Iterator[str]:
    """Yield the arguments that mount Python and its standard library, without other packages."""
    python, base = _python(), Path(sys.base_prefix)
    standard = sysconfig.get_path("stdlib", vars={"installed_base": str(base)})
    whole = [] if str(base) == "/usr" else [str(base / sys.platlibdir), str(base / "lib")]
    yield from _shown(python, python)
    for folder in dict.fromkeys((*whole, standard)):
        if os.path.isdir(folder):
            yield from _shown(folder, folder)
    for name in ("site-packages", "dist-packages"):
        if os.path.isdir(f"{standard}/{name}"):
            yield from ("--tmpfs", f"{standard}/{name}", "--remount-ro", f"{standard}/{name}")


def _packages() -> dict[str, Path]:
    found: dict[str, Path] = {}
    for name in PACKAGES:
        spec = find_spec(name.partition(".")[0])
        if spec is not None and spec.origin and (path := Path(spec.origin).parent.with_name(name)).is_dir():
            found[name] = path
    return found
