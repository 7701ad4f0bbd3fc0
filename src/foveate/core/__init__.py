"""The pure core: values, history, edits, projection, rules and plans.

Nothing in here does I/O, reads a clock or awaits. It imports the standard library and `msgspec`, and nothing of
foveate but `foveate.errors`.
"""
