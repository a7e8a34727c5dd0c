"""The demo: one day of the shop next door, told with figures that are checked. `examples/demo.py` starts it."""
