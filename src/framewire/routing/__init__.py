"""Where messages go: pure functions over a table, with no sockets and no clock."""

from framewire.routing.decision import HUB, routes_for
from framewire.routing.table import Route, RoutingTable

__all__ = ["HUB", "Route", "RoutingTable", "routes_for"]
