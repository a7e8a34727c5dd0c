"""Running nodes, and looking at those that run: what ``framewire node``, ``ps`` and the others are made of."""
