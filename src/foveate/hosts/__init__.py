"""Integrations with agent frameworks: one module for each, which needs that framework installed.

The modules import no SDK of a provider, and `import foveate` imports none of them.
"""
