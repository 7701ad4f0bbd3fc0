"""What an erasure found: what still tells of the messages, and what is to stand in its place."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from ...core.edits import Record
from ...core.runs import AgentRun, AgentRunStep
from ...core.stamps import Stamp
from ...ports import Erased, Finding
from .tree import Place

__all__ = ["Reach", "counted", "left_over"]


class Reach(Struct):
    """What tells of the messages, and what is to stand in its place."""

    ids: dict[str, int]
    """All messages concerned, those that showed them again included: id to position."""
    places: dict[Place, str]
    """Where their rows lie, and the id of each."""
    bodies: list[Place]
    """Rows of them that still say something."""
    stamps: dict[Place, Stamp]
    """Rows of them whose stamp still holds facts of an application."""
    records: list[tuple[int, Record]]
    """By branch: records of which some edit still tells of them, as they are to be."""
    edits: int
    """How many edits these records change."""
    snapshots: dict[int, bytes]
    """By branch: snapshots that do, as they are to be; b"" where one is better made anew."""
    runs: list[AgentRun]
    steps: list[AgentRunStep]

    @property
    def is_done(self) -> bool:
        """Whether there is nothing left to erase."""
        return not (self.bodies or self.stamps or self.records or self.snapshots or self.runs or self.steps)


def counted(found: Reach, done: Erased) -> Erased:
    """The erasure with what it comes to."""
    return replace(
        done,
        messages=len({*found.bodies, *found.stamps}),
        edits=found.edits,
        runs=len(found.runs),
        steps=len(found.steps),
    )


def left_over(found: Reach) -> list[Finding]:
    """What there still is of messages that are erased."""
    return [
        *(Finding(f"message {place.position}", "it shows again what was erased") for place in sorted(found.bodies)),
        *(
            Finding(f"message {place.position}", "its stamp holds facts of an application, and it was erased")
            for place in sorted(found.stamps)
        ),
        *(Finding(f"record {one.first}", "it holds a text made of what was erased") for _, one in found.records),
        *(Finding(f"snapshot of branch {n}", "it holds a text made of what was erased") for n in found.snapshots),
        *(Finding(f"run {run.id}", "it repeats what was erased") for run in found.runs),
        *(Finding(f"step {step.run}/{step.number}", "it tells of what was erased") for step in found.steps),
    ]
