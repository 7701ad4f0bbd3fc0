"""Tables in plain text, for mails and terminals."""

from granary.money import Money


def width(text):
    """Columns a text takes. Every character we print takes one."""
    return len(text)


def cell(value):
    if value is None:
        return ""
    if isinstance(value, Money):
        return value.short()
    return str(value)


def is_number(value):
    return isinstance(value, (int, float, Money)) and not isinstance(value, bool)


def render(header, rows, total=None, indent=""):
    """A table with a rule below its header, numbers to the right. `total` is a last row below another rule."""
    rows = [list(row) for row in rows]
    body = [[cell(value) for value in row] for row in rows]
    last = [[cell(value) for value in total]] if total is not None else []
    widths = [max(width(row[at]) for row in [list(header), *body, *last]) for at in range(len(header))]
    right = [bool(rows) and all(is_number(row[at]) or row[at] is None for row in rows) for at in range(len(header))]

    def line(values):
        padded = [value.rjust(size) if far else value.ljust(size) for value, size, far in zip(values, widths, right)]
        return (indent + "  ".join(padded)).rstrip()

    rule = indent + "  ".join("-" * size for size in widths)
    lines = [line(list(header)), rule, *(line(row) for row in body)]
    if last:
        lines += [rule, line(last[0])]
    return "\n".join(lines)


def box(title, lines):
    """A title and some lines in a frame."""
    size = max(width(text) for text in [title, *lines])
    top = f"+-- {title} {'-' * (size - width(title) - 1)}-+" if title else f"+{'-' * (size + 4)}+"
    middle = [f"|  {text.ljust(size)}  |" for text in lines]
    return "\n".join([top, *middle, f"+{'-' * (size + 4)}+"])
