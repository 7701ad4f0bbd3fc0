"""Pages that show what the model saw in each call of a conversation, what was left out and why, and what it cost."""
