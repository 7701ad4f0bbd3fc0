"""Engines: where the work of a corpus runs, in processes of this computer or on a Ray cluster.

An engine runs one function for many tasks. Results depend only on the tasks, so every engine and every number of
workers gives the same.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from importlib import import_module
from multiprocessing import get_context, resource_tracker
from typing import Any, Literal, Protocol, TypeVar

from ..errors import BadSetting

__all__ = ["Engine", "LocalEngine", "RayEngine", "WorkerLost", "open_engine"]

Task = TypeVar("Task")
Result = TypeVar("Result")


class WorkerLost(Exception):
    """The process that ran a task ended before the task did. An engine returns it in place of the task's result."""


class Engine(Protocol):
    """Runs tasks. Close it when it is no longer needed."""

    def map(
        self, function: Callable[[Task], Result], tasks: Sequence[Task]
    ) -> Iterator[tuple[int, Result | WorkerLost]]:
        """Yield the index and the result of each task, in the order in which the tasks end.

        Workers take the tasks in their order. An exception of the function is raised here. Closing the iterator drops
        the tasks that no worker has taken.
        """
        ...

    def close(self) -> None:
        """Release the workers."""
        ...


class LocalEngine:
    """Runs tasks in processes of this computer, or in this process if there is one worker or one task.

    The processes start with the first tasks and serve all later ones.
    """

    def __init__(self, workers: int | None = None) -> None:
        """Create an engine. `workers`: number of processes (default: the number of processors)."""
        self._workers = workers or os.cpu_count() or 1
        self._pool: ProcessPoolExecutor | None = None

    def works_here(self, tasks: int) -> bool:
        """Return whether so many tasks run in this process."""
        return self._workers == 1 or tasks < 2

    def map(
        self, function: Callable[[Task], Result], tasks: Sequence[Task]
    ) -> Iterator[tuple[int, Result | WorkerLost]]:
        if self.works_here(len(tasks)):
            for index, task in enumerate(tasks):
                yield index, function(task)
            return
        _check_pickling(function, tasks[0])
        pool = self._open()
        with _ctrl_c_held():  # The processes start with the first task.
            running: dict[Future[Result], int] = {pool.submit(function, task): i for i, task in enumerate(tasks)}
        try:
            for future in as_completed(running):
                try:
                    yield running[future], future.result()
                except BrokenProcessPool:
                    self.close()
                    yield running[future], WorkerLost()
        finally:
            for future in running:
                future.cancel()

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None

    def _open(self) -> ProcessPoolExecutor:
        if self._pool is None:
            # Spawned, not forked: a caller with a progress bar has threads.
            self._pool = ProcessPoolExecutor(
                self._workers, mp_context=get_context("spawn"), initializer=_end_quietly_at_ctrl_c
            )
        return self._pool


class RayEngine:
    """Runs tasks on a Ray cluster, or on a Ray of this computer if there is no cluster.

    `RAY_ADDRESS` names the cluster, as for every program of Ray. Its computers need foveate, and the recordings under
    the same paths.
    """

    def __init__(self, workers: int | None = None) -> None:
        """Connect to Ray. `workers`: most tasks at once (default: as many as the cluster runs).

        Raises BadSetting if the package is missing.
        """
        try:
            self._ray: Any = import_module("ray")
        except ImportError:
            raise BadSetting('The engine ray needs a package: pip install "foveate[ray]".') from None
        self._is_own = not self._ray.is_initialized()
        if self._is_own:
            self._ray.init(include_dashboard=False, log_to_driver=False, logging_level="ERROR")
        self._workers = workers

    def map(
        self, function: Callable[[Task], Result], tasks: Sequence[Task]
    ) -> Iterator[tuple[int, Result | WorkerLost]]:
        _check_pickling(function, *tasks[:1])
        remote = self._ray.remote(max_retries=0)(function)
        most = self._workers or len(tasks)
        waiting = iter(enumerate(tasks))
        running: dict[Any, int] = {}
        try:
            while True:
                for index, task in waiting:
                    running[remote.remote(task)] = index
                    if len(running) >= most:
                        break
                if not running:
                    return
                done, _ = self._ray.wait(list(running))
                for reference in done:
                    index = running.pop(reference)
                    try:
                        yield index, self._ray.get(reference)
                    except self._ray.exceptions.RayTaskError as error:
                        raise error.cause from None
                    except self._ray.exceptions.RayError:
                        yield index, WorkerLost()
        finally:
            for reference in running:
                self._ray.cancel(reference)

    def close(self) -> None:
        """Disconnect, unless the program had connected to Ray before."""
        if self._is_own:
            self._ray.shutdown()


def open_engine(engine: Engine | Literal["local", "ray"], workers: int | None = None) -> Engine:
    """Return the engine of this name, or the given engine. Raises BadSetting for an unknown name."""
    if engine == "local":
        return LocalEngine(workers)
    if engine == "ray":
        return RayEngine(workers)
    if isinstance(engine, str):
        raise BadSetting(f"There is no engine {engine!r}. Use local or ray.")
    return engine


def _check_pickling(function: object, *tasks: object) -> None:
    try:
        pickle.dumps((function, tasks))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise BadSetting(
            f"Policies and check functions of your own must be importable by name in other processes ({error}). "
            "Define them at the top of a module, or pass jobs=1."
        ) from error


@contextmanager
def _ctrl_c_held() -> Iterator[None]:
    """Hold Ctrl-C back while processes start, which inherit that and show no traceback. It counts afterwards."""
    if sys.platform == "win32":  # A process inherits nothing there.
        yield
        return
    resource_tracker.ensure_running()  # Its start would let Ctrl-C through again.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end_quietly_at_ctrl_c() -> None:
    """Let Ctrl-C end a worker without a traceback: the terminal sends it to all processes."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if sys.platform != "win32":
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
