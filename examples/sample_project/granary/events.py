"""What happened, for whoever wants to know: a list that can be listened to.

Listeners are called in the order in which they came. One that fails is reported as an event itself and the rest still
hear of the first; it must never stop an order.
"""

from collections import Counter
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any


@dataclass(frozen=True)
class Event:
    number: int
    name: str
    facts: dict[str, Any] = field(default_factory=dict)

    def __str__(self):
        facts = " ".join(f"{key}={value}" for key, value in self.facts.items())
        return f"#{self.number} {self.name} {facts}".rstrip()


class Events:
    def __init__(self, keep=10_000):
        self.keep = keep
        self.happened = []
        self.count = 0
        self._listeners = []

    def listen(self, pattern, listener):
        """Call `listener(event)` for names that match, such as `stock.*`. Returns a function that stops it."""
        entry = (pattern, listener)
        self._listeners.append(entry)

        def stop():
            if entry in self._listeners:
                self._listeners.remove(entry)

        return stop

    def emit(self, name, **facts):
        self.count += 1
        event = Event(self.count, name, facts)
        self.happened.append(event)
        del self.happened[: -self.keep]
        for pattern, listener in list(self._listeners):
            if fnmatchcase(name, pattern):
                self._call(listener, event)
        return event

    def _call(self, listener, event):
        try:
            listener(event)
        except Exception as error:
            if event.name != "listener.failed":
                self.emit("listener.failed", listener=getattr(listener, "__name__", "?"), error=str(error))

    def named(self, pattern):
        return [event for event in self.happened if fnmatchcase(event.name, pattern)]

    def totals(self):
        """How often each event happened, the commonest first."""
        counted = Counter(event.name for event in self.happened)
        return sorted(counted.items(), key=lambda item: (-item[1], item[0]))
