"""What the kernel is asked for inside the box: namespaces, mounts, no privileges, a filter of system calls.

Runs under the sandbox's Python with the standard library alone. Linux on x86-64 and 64-bit ARM.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import signal
import struct

NEW_NS, NEW_CGROUP, NEW_UTS, NEW_IPC = 0x0002_0000, 0x0200_0000, 0x0400_0000, 0x0800_0000
NEW_USER, NEW_PID, NEW_NET, NEW_TIME = 0x1000_0000, 0x2000_0000, 0x4000_0000, 0x0000_0080
NAMESPACES = NEW_NS | NEW_CGROUP | NEW_UTS | NEW_IPC | NEW_USER | NEW_PID | NEW_NET

NOSUID, NODEV, NOEXEC, BIND, RECURSIVE, PRIVATE = 2, 4, 8, 0x1000, 0x4000, 1 << 18
DETACH = 2
_PARENT_DIES, _SET_DUMPABLE, _CAPBSET_DROP, _NO_NEW_PRIVS, _SECCOMP = 1, 4, 24, 38, 22

NEWEST = 462
"""The newest system call that the filter knows; later ones are refused as if the kernel lacked them."""
DENIED: dict[str, tuple[int | None, int | None]] = {
    # looking into and steering other processes
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "pidfd_getfd": (438, 438),
    "kcmp": (312, 272),
    "setpriority": (141, 140),
    "ioprio_set": (251, 30),
    # file systems and namespaces
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "unshare": (272, 97),
    "setns": (308, 268),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262),
    "fanotify_mark": (301, 263),
    "statmount": (457, 457),
    "listmount": (458, 458),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    # memory that no limit counts
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "shmat": (30, 196),
    "semget": (64, 190),
    "msgget": (68, 186),
    "mq_open": (240, 180),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    # what is counted for all sessions, or the whole machine, together
    "io_setup": (206, 0),
    "inotify_init": (253, None),
    "inotify_init1": (294, 26),
    # large parts of the kernel that no program of a reply needs
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "splice": (275, 76),
    "tee": (276, 77),
    "vmsplice": (278, 75),
    "remap_file_pages": (216, 234),
    "mbind": (237, 235),
    "set_mempolicy": (238, 237),
    "migrate_pages": (256, 238),
    "move_pages": (279, 239),
    "modify_ldt": (154, None),
    "personality": (135, 92),
    "lookup_dcookie": (212, 18),
    "uselib": (134, None),
    "ustat": (136, None),
    "sysfs": (139, None),
    "_sysctl": (156, None),
    # the machine
    "reboot": (169, 142),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "adjtimex": (159, 171),
    "clock_adjtime": (305, 266),
    "syslog": (103, 116),
    "acct": (163, 89),
    "vhangup": (153, 58),
    "iopl": (172, None),
    "ioperm": (173, None),
}
"""System calls that are refused, with their numbers on x86-64 and on ARM."""
OF_ITSELF: dict[str, tuple[int, int]] = {
    "sched_setscheduler": (144, 119),
    "sched_setparam": (142, 118),
    "sched_setattr": (314, 274),
    "sched_setaffinity": (203, 122),
    "prlimit64": (302, 261),
}
"""System calls that are refused but for process 0, the caller: what watches over it is of the same user."""
_ARCHITECTURES = {"x86_64": (0, 0xC000_003E), "aarch64": (1, 0xC000_00B7)}
_CLONE, _CLONE3, _MMAP, _SETSOCKOPT = (56, 220), (435, 435), (9, 222), (54, 208)
_SOCKETS = (41, 198), (53, 199)
"""socket and socketpair."""
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
    """Move this process (of pid namespaces: its children) to new namespaces."""
    _call("unshare", namespaces)


def setns(descriptor: int, kind: int) -> None:
    """Enter a namespace (of pid namespaces: for children)."""
    _call("setns", descriptor, kind)


def mount(source: str, target: str, kind: str | None, flags: int, data: str = "") -> None:
    """Mount a file system."""
    words = [word.encode() if word is not None else None for word in (source, target, kind)]
    _call("mount", *words, ctypes.c_ulong(flags), data.encode() or None)


def unmount(target: str) -> None:
    """Take a mount away; what is still open in it stays."""
    _call("umount2", target.encode(), DETACH)


def set_dumpable(value: bool) -> None:
    """Whether others of the same user may look into this process, and it may dump core."""
    _call("prctl", _SET_DUMPABLE, int(value), 0, 0, 0)


def end_with_parent() -> None:
    """Be killed when the parent ends, however it does."""
    _call("prctl", _PARENT_DIES, int(signal.SIGKILL), 0, 0, 0)


def drop_privileges() -> None:
    """Give up every capability, now and for what is executed later."""
    _call("prctl", _NO_NEW_PRIVS, 1, 0, 0, 0)
    for capability in range(64):
        if _libc.prctl(_CAPBSET_DROP, capability, 0, 0, 0) != 0:
            break
    header, nothing = struct.pack("=Ii", 0x2008_0522, 0), bytes(24)
    _call("capset", header, nothing)


def filter_system_calls() -> None:
    """Refuse the system calls of ``DENIED`` from now on, in this process and all that come of it."""
    code = system_call_filter(platform.machine())
    buffer = ctypes.create_string_buffer(code)
    # struct sock_fprog: a short, padding, a pointer
    program = struct.pack("=H6xQ", len(code) // 8, ctypes.addressof(buffer))
    _call("prctl", _SECCOMP, 2, program, 0, 0)


def system_call_filter(machine: str) -> bytes:
    """Return the filter as classic BPF; ValueError on a machine whose system calls it does not know."""
    if machine not in _ARCHITECTURES:
        raise ValueError(f"there is no filter of system calls for {machine}")
    index, architecture = _ARCHITECTURES[machine]
    code = [_load(_ARCH), *_unless(_EQUAL, architecture, _KILL), _load(_NUMBER)]
    if machine == "x86_64":
        code += [_step(0x35, _X32, 0, 1), _result(_ERROR | errno.ENOSYS)]  # the 32-bit doubles of every call
    code += _when(_ABOVE, NEWEST, _ERROR | errno.ENOSYS)
    code += _when(_EQUAL, _CLONE3[index], _ERROR | errno.ENOSYS)  # its flags are out of a filter's sight
    for numbers in DENIED.values():
        number = numbers[index]
        if number is not None:
            code += _when(_EQUAL, number, _ERROR | errno.EPERM)
    for numbers in OF_ITSELF.values():
        code += _of(numbers[index], _load(_ARGUMENTS[0]), *_unless(_EQUAL, 0, _ERROR | errno.EPERM))
    for numbers in _SOCKETS:
        code += _of(numbers[index], _load(_ARGUMENTS[0]), *_unless(_EQUAL, 1, _ERROR | errno.EAFNOSUPPORT))
    code += _of(_CLONE[index], _load(_ARGUMENTS[0]), *_when(_ANY_OF, NAMESPACES, _ERROR | errno.EPERM))
    code += _of(_SETSOCKOPT[index], _load(_ARGUMENTS[2]), *_when(_EQUAL, _SEND_BUFFER, _ERROR | errno.EPERM))
    code += _of(  # memory that no process holds any more when its pages are dropped, or none ever seems to
        _MMAP[index],
        _load(_ARGUMENTS[3]),
        *_when(_ANY_OF, _HUGE, _ERROR | errno.ENOMEM),
        _step(_AND, _SHARED | _ANONYMOUS, 0, 0),
        *_when(_EQUAL, _SHARED | _ANONYMOUS, _ERROR | errno.EPERM),
    )
    return b"".join([*code, _result(_ALLOW)])


def _of(number: int, *steps: bytes) -> list[bytes]:
    """Return the steps for one system call, which is allowed where none of them returns."""
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
