"""Child process: a worker whose summarizer reports its call and never answers. Run it with a URL."""

from __future__ import annotations

import sys
import threading

from foveate.core.summaries import SummaryRequest
from foveate.ops.worker import Worker


def hanging(request: SummaryRequest) -> str:
    print("asked", flush=True)
    threading.Event().wait()
    return ""


if __name__ == "__main__":
    Worker(sys.argv[1], summarizer=hanging, policy="none").run()
