"""Many nodes: sockets, discovery, liveness."""
