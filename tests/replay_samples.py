"""Synthetic replays of a small agent that reads, edits and tests, under three policies.

They are deterministic, and use the real prices (read 0.1, write 1.25).
"""

from __future__ import annotations

import random

from foveate.replay.result import CallFigures, EditFigures, ReplayResult, Row

READ, WRITE, STUB = 0.1, 1.25, 24


def sample(name: str = "fix-login", *, policies=("none", "keep-last-5", "prune"), calls: int = 120, seed: int = 1):
    """Return the replays of one transcript, one for each policy."""
    return [_replay(name, policy, calls, seed) for policy in policies]


def _replay(name: str, policy: str, calls: int, seed: int) -> ReplayResult:
    dice = random.Random(seed)
    messages: list[list] = [["system", 2_400], ["user", 300]]
    course: list[CallFigures] = []
    edits: list[EditFigures] = []
    before: list[tuple] = []
    total = unmanaged = 0.0
    whole, whole_before = 2_700, 0
    rewrites = 0
    for turn in range(1, calls + 1):
        made = _edit(messages, policy)
        if made:
            edits.append(EditFigures(turn, made[0], made[1], sum(m[1] for m in messages), made[2], policy))
        view = [tuple(m) for m in messages]
        shared = 0
        for old, new in zip(before, view, strict=False):
            if old != new:
                break
            shared += new[1]
        rewrites += bool(before) and shared < sum(m[1] for m in before)
        tokens = sum(m[1] for m in view)
        cost = READ * shared + WRITE * (tokens - shared)
        total += cost
        everything = READ * whole_before + WRITE * (whole - whole_before)
        unmanaged += everything
        whole_before = whole
        by = {kind: sum(m[1] for m in view if m[0] == kind) for kind in ("system", "user", "assistant", "full", "stub")}
        course.append(
            CallFigures(
                turn=turn,
                message=len(messages) + 1,
                tokens=tokens,
                cached=shared,
                cost=cost,
                system=by["system"],
                user=by["user"],
                assistant=by["assistant"],
                results_full=by["full"],
                placeholders=by["stub"],
                milliseconds=dice.uniform(0.3, 1.4),
                misses=int(policy != "none" and dice.random() < 0.04),
                cost_unmanaged=everything,
            )
        )
        before = view
        text, answered = _turn(seed, turn)
        messages += [["assistant", text], ["full", answered]]
        whole += text + answered
        if turn % 30 == 0:
            messages.append(["user", 180])
            whole += 180
    misses = sum(call.misses for call in course)
    row = Row(
        transcript=name,
        policy=policy,
        messages=len(messages),
        calls=calls,
        input_tokens=sum(call.tokens for call in course),
        peak_tokens=max(call.tokens for call in course),
        cost=round(total, 1),
        cost_unmanaged=round(unmanaged, 1),
        cost_ratio=total / unmanaged,
        cost_all_in=total / unmanaged + misses * 0.004,
        expansions=misses,
        edits=len(edits),
        prefix_rewrites=rewrites,
        references=640,
        recall_visible=1 - misses / 100,
        said_references=212,
        said_visible=1.0,
        quoted_lines=388,
        quoted_visible=1 - misses / 70,
        recall_reachable=1.0,
        illegal_views=0,
        lost_messages=0,
        ms_per_turn_p50=0.71,
        ms_per_turn_p99=1.62,
        window=200_000,
        provider="anthropic",
        kept_apart={"side-chain lines": 12, "native compactions": 1},
    )
    return ReplayResult(row, tuple(course), tuple(edits))


def _turn(seed: int, turn: int) -> tuple[int, int]:
    dice = random.Random(seed * 100_003 + turn)
    return dice.randint(60, 420), int(min(9_000, dice.lognormvariate(6.6, 1.1)))


def _edit(messages: list[list], policy: str) -> tuple[int, int, int] | None:
    results = [index for index, message in enumerate(messages) if message[0] == "full"]
    if policy.startswith("keep-last-"):
        old = results[: -int(policy.rsplit("-", 1)[1])]
    elif policy == "prune":
        newest = 0
        old = []
        for index in reversed(range(len(messages))):
            if newest > 40_000 and index in results:
                old.append(index)
            newest += messages[index][1]
        if sum(messages[index][1] for index in old) < 20_000:
            old = []
    else:
        old = []
    old = [index for index in old if messages[index][1] > STUB]
    if not old:
        return None
    tokens = sum(message[1] for message in messages)
    for index in old:
        messages[index] = ["stub", STUB]
    return len(old), tokens, min(old) + 1
