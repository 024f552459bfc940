"""Becomes a program on a host that lacks something: `degraded.py HOST PROGRAM ARGUMENTS...`.

A filter of system calls answers as such a host's kernel would, for the program and all that it starts.
"""
import ctypes
import errno
import os
import platform
import struct
import sys

NEWUSER, NEWNET = 0x10000000, 0x40000000
NEW = 0x7E020000 | 0x80  # CLONE_NEW*, with the time namespace
X86 = platform.machine() == "x86_64"
CLONE = 56 if X86 else 220
CLONE3, UNSHARE = 435, 272 if X86 else 97
MOUNT, KEYCTL = (165, 250) if X86 else (40, 219)
SECCOMP, PIVOT_ROOT = (317, 155) if X86 else (277, 41)
OPEN_TREE, MOVE_MOUNT, FSOPEN, FSCONFIG, FSMOUNT, FSPICK, MOUNT_SETATTR = 428, 429, 430, 431, 432, 433, 442
LANDLOCK = 444

# Call, mask of its first argument (None: any), error.
HOSTS = {
    "full": [],
    "no-landlock": [(LANDLOCK, None, errno.ENOSYS)],
    "no-user-namespaces": [
        (CLONE, NEWUSER, errno.EPERM),
        (UNSHARE, NEWUSER, errno.EPERM),
        (CLONE3, None, errno.ENOSYS),
    ],
    "no-network-namespaces": [
        (CLONE, NEWNET, errno.EINVAL),
        (UNSHARE, NEWNET, errno.EINVAL),
        (CLONE3, None, errno.ENOSYS),
    ],
    "no-seccomp": [(SECCOMP, None, errno.EINVAL)],
    "no-mount-calls": [
        (call, None, errno.ENOSYS)
        for call in (OPEN_TREE, MOVE_MOUNT, FSOPEN, FSCONFIG, FSMOUNT, FSPICK, MOUNT_SETATTR)
    ],
    "docker": [
        (CLONE, NEW & ~0x80, errno.EPERM),
        (UNSHARE, None, errno.EPERM),
        (CLONE3, None, errno.ENOSYS),
        (KEYCTL, None, errno.EPERM),
        (MOUNT, None, errno.EPERM),
        (PIVOT_ROOT, None, errno.EPERM),
        (OPEN_TREE, None, errno.EPERM),
        (MOVE_MOUNT, None, errno.EPERM),
        (FSOPEN, None, errno.EPERM),
        (MOUNT_SETATTR, None, errno.EPERM),
    ],
}


def program(rules):
    load, equal, any_of, give = 0x20, 0x15, 0x45, 0x06
    code = []
    for call, mask, error in rules:
        refuse = (give, 0, 0, 0x00050000 | error)
        if mask is None:
            code += [(load, 0, 0, 0), (equal, 0, 1, call), refuse]
        else:
            code += [(load, 0, 0, 0), (equal, 0, 3, call), (load, 0, 0, 16), (any_of, 0, 1, mask), refuse]
    code.append((give, 0, 0, 0x7FFF0000))
    return b"".join(struct.pack("HBBI", *step) for step in code), len(code)


def main():
    host, argv = sys.argv[1], sys.argv[2:]
    libc = ctypes.CDLL(None, use_errno=True)
    if HOSTS[host]:
        text, length = program(HOSTS[host])
        held = ctypes.create_string_buffer(text)
        described = struct.pack("HxxxxxxQ", length, ctypes.addressof(held))
        if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.c_char_p(described), 0, 0):
            sys.exit("no filter: " + os.strerror(ctypes.get_errno()))
    os.execv(argv[0], argv)


main()
