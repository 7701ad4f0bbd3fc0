"""A small language to filter invoices, orders and customers: `status = "open" and total >= 500`.

    from granary.query import compile_filter
    wanted = compile_filter('customer = "C-20418" and not total < 100')
    rows = [row for row in rows if wanted(row)]
"""

from granary.query.evaluate import matcher
from granary.query.parser import parse


def compile_filter(text):
    """A function from a row (a dict) to True or False. Raises QueryError where the text cannot be read."""
    return matcher(parse(text))
