"""Conversations and replays as files: self-contained HTML, and Markdown."""
