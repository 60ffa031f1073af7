"""Sockets that we listen at; Unix ones with their folder, who may use them, and what lies there."""

from __future__ import annotations

import contextlib
import grp
import os
import socket
import stat
from pathlib import Path

from acceld.errors import EXIT_CONFLICT, EXIT_DENIED, StartFailure

GROUP = "accel"  # may use the sockets, where this group exists
MODE = 0o660


def prepare(path: Path) -> None:
    """Make the folder, and clear away a socket that nobody answers at. Raises StartFailure."""
    make_folder(path.parent)
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    except OSError as error:
        raise cannot_listen(path, error.strerror or str(error)) from error
    if not stat.S_ISSOCK(mode):
        raise StartFailure(
            f"{path} exists and is no socket; move it away or choose another --socket",
            EXIT_CONFLICT,
        )
    if answers(path):
        raise StartFailure(
            f"another daemon answers at {path}; stop it, or choose a --socket in another folder",
            EXIT_CONFLICT,
        )
    try:
        path.unlink(missing_ok=True)
    except PermissionError as error:
        raise StartFailure(f"{path} is left over and not ours to remove", EXIT_DENIED) from error


def make_folder(folder: Path) -> None:
    """With rights for nobody else, unless it exists. Raises StartFailure."""
    try:
        folder.mkdir(mode=0o750, parents=True, exist_ok=True)
        status = folder.stat()
    except OSError as error:
        code = EXIT_DENIED if isinstance(error, PermissionError) else EXIT_CONFLICT
        raise StartFailure(f"cannot make the folder {folder}: {error.strerror}", code) from error
    # Under /tmp somebody else may have made it first, to receive what is meant for us.
    if folder.parent == Path("/tmp") and status.st_uid != os.geteuid():
        raise StartFailure(f"{folder} belongs to another user", EXIT_DENIED)


def answers(path: Path) -> bool:
    """Whether somebody listens there."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except OSError:
            return True  # It is there and full, or not for us: not ours to remove.
        return True


def share(path: Path) -> None:
    """Let the group in, where it exists and we may."""
    with contextlib.suppress(KeyError, PermissionError):
        os.chown(path, -1, grp.getgrnam(GROUP).gr_gid)
    os.chmod(path, MODE)


def listen_tcp(host: str, port: int) -> socket.socket:
    """A listening socket. Raises OSError when the address is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen()
    except BaseException:
        listener.close()
        raise
    return listener


def listen(path: Path) -> socket.socket:
    """A listening socket, shared. Raises StartFailure."""
    prepare(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    try:
        with private_umask():
            listener.bind(str(path))
        share(path)
        listener.listen(64)
    except OSError as error:
        listener.close()
        raise cannot_listen(path, error.strerror or str(error)) from error
    return listener


def cannot_listen(path: Path, why: str) -> StartFailure:
    code = EXIT_CONFLICT if os.access(path.parent, os.W_OK | os.X_OK) else EXIT_DENIED
    return StartFailure(f"cannot listen at {path}: {why}", code)


class private_umask:
    """What is made inside is for owner and group alone."""

    def __enter__(self) -> None:
        self._before = os.umask(0o117)

    def __exit__(self, *_: object) -> None:
        os.umask(self._before)
