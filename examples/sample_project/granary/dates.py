"""Business days, due dates, ends of months.

No function here asks for today's date: whoever calls says which day it is.
"""

from datetime import date, timedelta

SATURDAY, SUNDAY = 5, 6


def easter(year):
    """Easter Sunday by the anonymous Gregorian computus."""
    a, b, c = year % 19, year // 100, year % 100
    d, e = b // 4, b % 4
    f = (b + 8) // 25
    g = (b - f + 1) // 3
    h = (19 * a + b - d - g + 15) % 30
    i, k = c // 4, c % 4
    j = (32 + 2 * e + 2 * i - h - k) % 7
    m = (a + 11 * h + 22 * j) // 451
    month, day = divmod(h + j - 7 * m + 114, 31)
    return date(year, month, day + 1)


def holidays(year):
    """Days on which the warehouse is shut."""
    sunday = easter(year)
    return {
        date(year, 1, 1): "New Year",
        sunday - timedelta(days=2): "Good Friday",
        sunday + timedelta(days=1): "Easter Monday",
        date(year, 5, 1): "Labour Day",
        sunday + timedelta(days=39): "Ascension",
        sunday + timedelta(days=50): "Whit Monday",
        date(year, 12, 25): "Christmas",
        date(year, 12, 26): "St Stephen",
    }


def is_business_day(day):
    return day.weekday() not in (SATURDAY, SUNDAY) and day not in holidays(day.year)


def next_business_day(day):
    """The day itself if the warehouse is open, else the next day on which it is."""
    while not is_business_day(day):
        day += timedelta(days=1)
    return day


def add_business_days(day, count):
    """The day `count` open days later. Zero: the day itself, open or not."""
    for _ in range(count):
        day = next_business_day(day + timedelta(days=1))
    return day


def end_of_month(day):
    """The last day of the month that `day` is in."""
    first_of_next = date(day.year, day.month + 1, 1)
    return first_of_next - timedelta(days=1)


def add_months(day, count):
    """The same day some months later, or the last day of that month where it is shorter."""
    months = day.year * 12 + day.month - 1 + count
    year, month = divmod(months, 12)
    last = end_of_month(date(year, month + 1, 1))
    return date(year, month + 1, min(day.day, last.day))


def due_date(invoiced, terms):
    """When an invoice is due.

    Terms: `net 30` (days after the invoice), `eom 30` (days after the end of its month), `cash` (the same day). A due
    date on which banks are shut moves to the next business day.
    """
    kind, _, days = terms.partition(" ")
    if kind == "cash":
        return invoiced
    if kind == "eom":
        return next_business_day(end_of_month(invoiced) + timedelta(days=int(days)))
    if kind == "net":
        return next_business_day(invoiced + timedelta(days=int(days)))
    raise ValueError(f"unknown terms {terms!r}")


def days_late(due, today):
    """Days since the due date; zero while it has not passed."""
    return max(0, (today - due).days)
