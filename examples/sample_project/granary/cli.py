"""The command line: `python -m granary.cli COMMAND ...`"""

import argparse
import sys
from datetime import date

from granary import bankfile, catalog, customers, reports
from granary.errors import GranaryError
from granary.query import compile_filter
from granary.storage import Storage


def build_parser():
    parser = argparse.ArgumentParser(prog="granary")
    parser.add_argument("--database", default="granary.db")
    commands = parser.add_subparsers(dest="command", required=True)

    invoices = commands.add_parser("invoices", help="list invoices that match a filter")
    invoices.add_argument("filter", nargs="?", default="")

    ageing = commands.add_parser("ageing", help="what is owed, by how late it is")
    ageing.add_argument("--today", type=date.fromisoformat, required=True)

    check = commands.add_parser("check", help="read a file and say what is wrong with it")
    check.add_argument("kind", choices=["products", "customers", "bank"])
    check.add_argument("path")
    return parser


def main(arguments=None, out=print):
    options = build_parser().parse_args(arguments)
    try:
        return COMMANDS[options.command](options, out)
    except GranaryError as error:
        out(f"error: {error}")
        return 1


def list_invoices(options, out):
    wanted = compile_filter(options.filter) if options.filter else None
    with Storage(options.database) as storage:
        for row in storage.invoices(wanted):
            out(f"{row['number']}  {row['customer']}  {row['issued']}  {row['total']}  {row['status']}")
    return 0


def show_ageing(options, out):
    with Storage(options.database) as storage:
        out(reports.ageing_text(storage.invoices(), options.today))
    return 0


def check_file(options, out):
    if options.kind == "bank":
        statement = bankfile.read(options.path)
        problems, good = statement.rejected, len(statement.payments) + len(statement.outgoing)
    else:
        loaded, problems = (catalog if options.kind == "products" else customers).load(options.path)
        good = len(loaded)
    for problem in problems:
        out(str(problem))
    out(f"{good} good, {len(problems)} bad")
    return 1 if problems else 0


COMMANDS = {"invoices": list_invoices, "ageing": show_ageing, "check": check_file}

if __name__ == "__main__":
    sys.exit(main())
