"""Reminders for what is late: which stage, which text, which fee."""

from dataclasses import dataclass
from datetime import date

from granary.dates import days_late
from granary.money import Money, total_of

STAGES = (
    (7, "Friendly reminder", Money(0)),
    (21, "Second reminder", Money(500)),
    (35, "Last reminder before collection", Money(1000)),
)


@dataclass(frozen=True)
class Reminder:
    customer: str
    stage: int
    title: str
    invoices: tuple[str, ...]
    amount: Money
    fee: Money
    day: date


def stage_of(due, today):
    """0: no reminder yet; else the number of the last stage whose days have passed."""
    late = days_late(due, today)
    return sum(1 for days, _, _ in STAGES if late >= days)


def reminders(invoices, today, sent=None):
    """One reminder for each customer, at the highest stage any invoice has reached and that was not sent before.

    `sent` is {invoice number: highest stage sent}.
    """
    sent = sent or {}
    by_customer = {}
    for row in invoices:
        stage = stage_of(row["due"], today)
        if row["open"].cents > 0 and stage > sent.get(row["number"], 0):
            by_customer.setdefault(row["customer"], []).append((stage, row))
    found = []
    for customer, late in sorted(by_customer.items()):
        stage = max(stage for stage, _ in late)
        _, title, fee = STAGES[stage - 1]
        numbers = tuple(row["number"] for _, row in late)
        amount = total_of(row["open"] for _, row in late)
        found.append(Reminder(customer, stage, title, numbers, amount, fee, today))
    return found


def letter(reminder, name):
    """The text of a reminder."""
    lines = [
        f"{reminder.title}",
        "",
        f"Dear {name},",
        "",
        f"these invoices are past due: {', '.join(reminder.invoices)}.",
        f"Please transfer {reminder.amount} within seven days.",
    ]
    if reminder.fee:
        lines.append(f"A fee of {reminder.fee} has been added to your account.")
    return "\n".join(lines)
