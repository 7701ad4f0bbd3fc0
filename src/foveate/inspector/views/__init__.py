"""Contents of pages: the calls of a conversation, its view at each of them, charts, comparisons and spending."""
