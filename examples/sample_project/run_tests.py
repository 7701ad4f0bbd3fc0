"""Run the tests: `python run_tests.py [-q] [name ...]`.

Names are modules of `tests`, such as `test_money`; none: all. Prints one line a test (with -q only what failed), then
each failure as the innermost frames of this project, the source line and the error, then a line of totals. No times, no
absolute paths: two runs over the same code print the same.
"""

import linecache
import os
import sys
import traceback
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))


class Lines(unittest.TestResult):
    def __init__(self, quiet):
        super().__init__()
        self.quiet = quiet
        self.passed = 0
        self.details = []

    def say(self, test, word):
        if not self.quiet or word != "ok":
            print(f"{test.id()} ... {word}")

    def addSuccess(self, test):
        self.passed += 1
        self.say(test, "ok")

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self.say(test, "FAIL")
        self.details.append(("FAIL", test.id(), frames(error), message(error)))

    def addError(self, test, error):
        super().addError(test, error)
        self.say(test, "ERROR")
        self.details.append(("ERROR", test.id(), frames(error), message(error)))

    def addSubTest(self, test, part, error):
        """A part that failed counts like a test of its own; what was tried is in its name."""
        if error is not None:
            failed = issubclass(error[0], test.failureException)
            self.say(part, "FAIL" if failed else "ERROR")
            self.details.append(("FAIL" if failed else "ERROR", part.id(), frames(error), message(error)))


def frames(error):
    """The frames inside this project, outermost first."""
    found = []
    for frame, line in traceback.walk_tb(error[2]):
        path = frame.f_code.co_filename
        # A comprehension is a frame of its own up to Python 3.11, and none from 3.12 on.
        if path.startswith(HERE + os.sep) and not frame.f_code.co_name.endswith("comp>"):
            source = linecache.getline(path, line).strip()
            found.append(f"{os.path.relpath(path, HERE)}:{line}: in {frame.f_code.co_name}\n    {source}")
    return found


def message(error):
    text = str(error[1]).strip()
    return "\n".join(f"E   {line}".rstrip() for line in f"{error[0].__name__}: {text}".splitlines())


def main(arguments):
    quiet = "-q" in arguments
    names = [f"tests.{name}" for name in arguments if name != "-q"]
    sys.path.insert(0, HERE)
    loader = unittest.TestLoader()
    if names:
        suite = loader.loadTestsFromNames(names)
    else:
        suite = loader.discover(os.path.join(HERE, "tests"), top_level_dir=HERE)
    result = Lines(quiet)
    suite.run(result)
    for kind, name, places, text in result.details:
        print("=" * 100)
        print(f"{kind}: {name}")
        print("-" * 100)
        print("\n".join([*places, text]))
    print("=" * 100)
    passed = result.passed
    print(f"{result.testsRun} tests, {passed} passed, {result.testsRun - passed} failed")
    return 1 if result.details else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
