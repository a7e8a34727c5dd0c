"""A small shop: five departments that talk by messages, on as many nodes as you like."""
