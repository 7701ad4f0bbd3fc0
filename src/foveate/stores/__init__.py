"""Places to keep conversations: `memory` (the oracle), and one SQL store with a thin driver for each database."""
