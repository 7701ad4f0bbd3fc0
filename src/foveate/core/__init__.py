"""Pure values and functions: history, edits, projection, rules and plans.

The core does no I/O, reads no clock and awaits nothing. It imports the standard library, `msgspec` and
`foveate.errors`.
"""
