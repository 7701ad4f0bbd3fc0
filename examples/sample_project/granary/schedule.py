"""Standing orders: what a bakery gets every week without asking, and when."""

from dataclasses import dataclass
from datetime import date, timedelta

from granary.dates import add_months, is_business_day, next_business_day

WEEKDAYS = ("mon", "tue", "wed", "thu", "fri")


@dataclass(frozen=True)
class Rhythm:
    """How often: every `every` weeks on some weekdays, or every `every` months on the day of `start`."""

    start: date
    unit: str = "week"
    every: int = 1
    weekdays: tuple[str, ...] = ()
    until: date | None = None

    def days(self, first, last):
        """Delivery days between two dates, both included. A day on which the warehouse is shut moves forward."""
        last = min(last, self.until) if self.until else last
        raw = self._weekly(last) if self.unit == "week" else self._monthly(last)
        moved = sorted({next_business_day(day) for day in raw if day >= self.start})
        return [day for day in moved if first <= day <= last]

    def _weekly(self, last):
        monday = self.start - timedelta(days=self.start.weekday())
        wanted = [WEEKDAYS.index(name) for name in self.weekdays] or [min(self.start.weekday(), 4)]
        while monday <= last:
            yield from (monday + timedelta(days=offset) for offset in wanted)
            monday += timedelta(weeks=self.every)

    def _monthly(self, last):
        count = 0
        while (day := add_months(self.start, count * self.every)) <= last:
            yield day
            count += 1


@dataclass(frozen=True)
class StandingOrder:
    customer: str
    sku: str
    sacks: int
    rhythm: Rhythm
    pauses: tuple[tuple[date, date], ...] = ()

    def deliveries(self, first, last):
        """Days and sacks; days inside a pause are left out."""
        return [(day, self.sacks) for day in self.rhythm.days(first, last) if not self._paused(day)]

    def _paused(self, day):
        return any(first <= day <= last for first, last in self.pauses)


def workload(orders, first, last):
    """How many sacks leave on each business day of a period, days without deliveries included."""
    sacks = {}
    day = first
    while day <= last:
        if is_business_day(day):
            sacks[day] = 0
        day += timedelta(days=1)
    for order in orders:
        for day, count in order.deliveries(first, last):
            sacks[day] = sacks.get(day, 0) + count
    return sacks
