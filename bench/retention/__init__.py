"""A benchmark of retention: facts that are said once, and how many of them summaries and views still show.

`python bench/retention` runs it. `python bench/run.py retention` prints its main figures with the other benchmarks.
"""
