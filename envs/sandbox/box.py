"""The outer box: bubblewrap around the process that forks the sessions; unsafe, that process alone."""

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
"""What programs can import in addition to the standard library."""
PRELOADED = (
    "sympy",
    "numpy",
    "networkx",
    "scipy.special",
    "scipy.optimize",
    "scipy.integrate",
    "scipy.linalg",
)
"""What a session has imported before its first program."""
OLDEST_KERNEL = (5, 14)  # the first kernel that counts the processes of each user namespace apart
SYSTEM_LIBRARIES = ("/usr/lib", "/usr/lib64", "/lib", "/lib64")
"""Where libraries lie; of the first, only those of this machine's kind if they have a folder."""
DEVICES = ("null", "full", "random", "urandom")
"""Not zero: what is mapped of it is memory that no process need hold."""
CAPABILITIES = ("CAP_SYS_ADMIN", "CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP")
"""Kept by the process that forks the sessions; a session has none."""
SETTINGS = {
    "/proc/sys/kernel/unprivileged_userns_clone": "0",
    "/proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1",
    "/proc/sys/user/max_user_namespaces": "0",
}
"""Settings of the kernel with the value by which users cannot make namespaces."""
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
    """What each program, or each session, may take at most."""

    seconds: float = 10.0
    """Wall time of one program; what it waits for a core does not count."""
    memory_mb: int = 1024
    """Memory of all processes of a session together, files aside."""
    processes: int = 32
    """Processes and threads of a session in addition to its own."""
    file_mb: int = 64
    """All files of a session together, and the output of a program; they lie in memory."""
    output_chars: int = 8192
    """Characters of a program's output; of a longer one the middle is left out."""


class SandboxRefused(ValueError):
    """A machine that cannot run a sandbox; the text names what to install or to set."""


def check_system() -> None:
    """SandboxRefused where bubblewrap cannot run, as far as that is seen without trying."""
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
        raise SandboxRefused(
            "the sandbox needs bubblewrap: apt install bubblewrap (dnf, pacman, zypper: the same name)"
        )


def refusal(reason: str) -> SandboxRefused:
    """Return why a box could not be made, with the settings of this kernel that may forbid it."""
    lines = [line for line in reason.strip().splitlines() if line]
    hints: list[str] = []
    for path, forbids in SETTINGS.items():
        with suppress(OSError):
            if Path(path).read_text().strip() == forbids:
                name = path.removeprefix("/proc/sys/").replace("/", ".")
                value = "0" if forbids == "1" else "1" if "clone" in name else "10000"
                hints.append(f"set {name} = {value} with sysctl")
    hints = hints or [
        "in a container, allow namespaces (docker run --privileged, or --security-opt "
        "seccomp=unconfined with --security-opt systempaths=unconfined)"
    ]
    said = lines[-1] if lines else "it ended without a word"
    return SandboxRefused(f"the sandbox cannot run: {said}; {', '.join(hints)}")


class Zygote:
    """The process that forks the sessions, and the way to ask it."""

    def __init__(self, limits: Limits, *, unsafe: bool) -> None:
        self._ours, theirs = socket.socketpair()
        self._ours.settimeout(10.0)
        host = os.pidfd_open(os.getpid()) if hasattr(os, "pidfd_open") else -1
        words = asdict(limits) | {"boxed": not unsafe, "control": theirs.fileno(), "host": host}
        words["modules"] = [name for name in PRELOADED if find_spec(name.partition(".")[0]) is not None]
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115, lives as long as the process
        try:
            self._process = subprocess.Popen(
                plain_command(words) if unsafe else box_command(words),
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
        """Return whether the process is there."""
        return self._process.poll() is None

    def ask(self, session: socket.socket) -> None:
        """Ask for a session that is spoken to by this socket."""
        socket.send_fds(self._ours, [b"s"], [session.fileno()])

    def complaint(self) -> str:
        """Return what the process has said on its standard error."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(1.0)
        size = os.fstat(self._errors.fileno()).st_size
        return os.pread(self._errors.fileno(), 4096, max(size - 4096, 0)).decode("utf-8", "replace")

    def close(self) -> None:
        """End it, and every session with it."""
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
    """Return how the process is started without a box."""
    homes = dict.fromkeys(str(path.parent) for path in _packages().values())
    return [_python(), *_python_words([str(_INSIDE.parent), *homes], words)]


def box_command(words: Mapping[str, object]) -> list[str]:
    """Return how the process is started in its box: with Python, the packages and nothing else."""
    command = ["bwrap", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"]
    command += ["--unshare-cgroup-try", "--hostname", "sandbox", "--new-session", "--as-pid-1", "--clearenv"]
    if os.getuid() != 0:  # for root it would be root itself that runs the programs
        command.append("--unshare-user")
    command += ["--cap-drop", "ALL", *_each("--cap-add", CAPABILITIES)]
    command += [word for name, value in ENVIRONMENT.items() for word in ("--setenv", name, value)]
    command += [*_system_files(), *_python_files()]
    for name, path in _packages().items():
        command += _shown(str(path), f"/packages/{name}")
    command += [*_shown(str(_INSIDE), "/sandbox/inside"), "--proc", "/proc", "--tmpfs", "/dev"]
    for device in DEVICES:
        command += ["--dev-bind", f"/dev/{device}", f"/dev/{device}"]
    command += [*_each("--dir", ("/dev/shm", "/tmp", "/mnt")), *_each("--remount-ro", ("/dev", "/"))]
    return [*command, "--chdir", "/tmp", "--", _python(), *_python_words(["/sandbox", "/packages"], words)]


def _each(option: str, values: Sequence[str]) -> list[str]:
    return [word for value in values for word in (option, value)]


def _shown(source: str, target: str) -> list[str]:
    """Return the words that show a file or folder to read, in folders that any user may enter."""
    folders = [str(folder) for folder in reversed(Path(target).parents)][1:]
    return [
        *(word for one in folders for word in ("--perms", "0755", "--dir", one)),
        "--ro-bind",
        source,
        target,
    ]


def _python() -> str:
    return os.path.realpath(getattr(sys, "_base_executable", sys.executable))


def _python_words(path: list[str], words: Mapping[str, object]) -> list[str]:
    return ["-s", "-S", "-P", "-c", START.format(path=path, words=repr(json.dumps(dict(words))))]


def _system_files() -> Iterator[str]:
    """Yield the words that bring the system's libraries into the box."""
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
    """Yield the words that bring Python and its standard library into the box, and no other packages."""
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
    """Return where the packages lie that are here."""
    found: dict[str, Path] = {}
    for name in PACKAGES:
        spec = find_spec(name.partition(".")[0])
        home = Path(spec.origin).parent if spec is not None and spec.origin else None
        path = home.with_name(name) if home is not None else None
        if path is not None and path.is_dir():
            found[name] = path
    return found
