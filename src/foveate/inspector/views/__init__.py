"""What pages show: the calls of a conversation, the view at each of them, charts, comparisons and spending."""
