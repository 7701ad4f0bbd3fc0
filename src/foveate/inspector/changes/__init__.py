"""What pages change: plans and their dry runs, and actions on a conversation."""
