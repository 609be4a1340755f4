"""One peer on one fold, in a process of its own.

So a peer that takes too long is ended, wherever it is, and one that breaks down takes nothing else
with it. The process stays from fold to fold: what is compiled once need not be compiled again.
Time is CPU time, which other work on the machine does not change much.
"""

from __future__ import annotations

import multiprocessing
import resource
import signal
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from .counts import Counts
from .task import Task

MASS = 0.9
BOTH = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
Load = Callable[[], Callable[[Task], Counts]]  # imports a peer and gives its fit_predict


class Worker:
    """A peer that waits for folds. Its process starts with the first."""

    def __init__(self, load: Load, limit: int) -> None:
        self.load, self.limit = load, limit
        self.process: Any = None

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.join()

    def __call__(self, task: Task, y: np.ndarray) -> dict[str, Any]:
        """What `measured` gives, or why there is nothing."""
        if self.process is None:
            spawn = multiprocessing.get_context("spawn")  # JAX has threads, which no fork survives
            self.ours, theirs = spawn.Pipe()
            self.process = spawn.Process(target=serve, args=(theirs, self.load, self.limit))
            self.process.start()
            theirs.close()
        try:
            self.ours.send((task, y))
            return self.ours.recv()
        except (EOFError, ConnectionError):
            self.process.join()
        code = self.process.exitcode
        if code == -signal.SIGXCPU:
            return failed(f"more than {self.limit} s of CPU", f"> {self.limit} s")
        return failed(f"its process ended by itself ({code})")


def failed(why: str, cell: str = "failed") -> dict[str, Any]:
    """In place of numbers: a sentence, and what the tables say."""
    return {"failed": why, "cell": cell}


def serve(asked: Any, load: Load, limit: int) -> None:
    """The process: folds come, numbers go."""
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    while True:
        try:
            task, y = asked.recv()
        except EOFError:
            return
        # The system ends the process when this is used up, or R's, which has no more either.
        most = resource.getrlimit(resource.RLIMIT_CPU)[1]
        spent = cpu(resource.RUSAGE_SELF)
        resource.setrlimit(resource.RLIMIT_CPU, (int(spent) + limit, most))
        asked.send(measured(load, task, y))


def cpu(*whose: int) -> float:
    """Seconds of this process, or of those it has waited for."""
    spent = [resource.getrusage(who) for who in whose]
    return sum(one.ru_utime + one.ru_stime for one in spent)


def measured(load: Load, task: Task, y: np.ndarray) -> dict[str, Any]:
    """Each unit's score, whether its set holds it, what the set should hold; and CPU seconds."""
    try:
        fit_predict = load()
        begin = cpu(*BOTH)
        law = fit_predict(task)
        used = cpu(*BOTH) - begin
        score = law.log_prob(y)
        low, high, held = law.interval(MASS)
    except ImportError as problem:
        return failed(f"not installed ({problem})", "not installed")
    except Exception as problem:  # whatever a peer raises, the others go on
        return failed(f"{type(problem).__name__}: {str(problem)[:200]}")
    if not np.isfinite(score).all():
        return failed(f"{int((~np.isfinite(score)).sum())} counts have no mass")
    inside = (low <= y) & (y <= high)
    return {
        "score": score.tolist(), "inside": inside.tolist(), "held": held.tolist(), "cpu": used,
    }  # fmt: skip
