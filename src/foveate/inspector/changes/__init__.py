"""Changes that pages make: plans with their dry runs, and actions on a conversation."""
