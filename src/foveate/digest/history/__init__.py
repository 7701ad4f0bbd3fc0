"""The digest of a history: its goal, rules, values, steps and names, without a model."""

from .writing import binding_statements, digest_messages

__all__ = ["binding_statements", "digest_messages"]
