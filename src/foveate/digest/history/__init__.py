"""The digest of a history: its goal, rules, values, steps and names, without a model."""

from .writing import digest_messages

__all__ = ["digest_messages"]
