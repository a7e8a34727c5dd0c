"""The routing table against a model that is too simple to be wrong: queues of routes."""

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from framewire.routing import Route, RoutingTable
from framewire.wire import MessageId

MESSAGES = [MessageId(b"a"), MessageId(b"a", 2), MessageId(b"a", 1, b"eu"), MessageId(b"b")]
NODES = [b"", b"n1", b"n2"]
ROUTES = [Route(kind + name, node) for kind in (b"\x00", b"\x01") for name in (b"x", b"y") for node in NODES]
messages = st.sampled_from(MESSAGES)
routes = st.sampled_from(ROUTES)
nodes = st.sampled_from(NODES[1:])


class Queues:
    """Who is next, by standing in a queue and going to its end after each turn."""

    def __init__(self):
        self.waiting = {}

    def add(self, message, route):
        self.waiting.setdefault(message, []).append(route)

    def remove(self, message, route):
        if route in self.waiting.get(message, ()):
            self.waiting[message].remove(route)

    def next(self, message):
        queue = self.waiting.get(message)
        if not queue:
            return None
        queue.append(queue.pop(0))
        return queue[-1]


class TableAgainstQueues(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.table = RoutingTable()
        self.everywhere = Queues()
        self.here = Queues()
        self.handled = {}
        self.nodes = set()

    @rule(message=messages, route=routes)
    def add(self, message, route):
        new = message not in self.handled.get(route, ())
        assert self.table.add(message, route) is new
        if new:
            self._receiver(route)
            self.handled[route].add(message)
            self.everywhere.add(message, route)
            if not route.node:
                self.here.add(message, route)

    @rule(route=routes)
    def add_receiver(self, route):
        self.table.add_receiver(route)
        self._receiver(route)

    @rule(node=nodes)
    def add_node(self, node):
        self.table.add_node(node)
        self.nodes.add(node)

    @rule(message=messages, route=routes)
    def remove(self, message, route):
        known = message in self.handled.get(route, ())
        assert self.table.remove(message, route) is known
        if known:
            self.handled[route].remove(message)
            self.everywhere.remove(message, route)
            self.here.remove(message, route)

    @rule(route=routes)
    def remove_receiver(self, route):
        self.table.remove_receiver(route)
        self._forget(route)

    @rule(node=nodes)
    def remove_node(self, node):
        self.table.remove_node(node)
        self.nodes.discard(node)
        for route in [route for route in self.handled if route.node == node]:
            self._forget(route)

    @precondition(lambda self: self.handled)
    @rule(message=messages)
    def next(self, message):
        assert self.table.next(message) == self.everywhere.next(message)

    @precondition(lambda self: self.handled)
    @rule(message=messages)
    def next_here(self, message):
        assert self.table.next_here(message) == self.here.next(message)

    @invariant()
    def lists_the_same(self):
        assert self.table.routes == self.handled
        assert set(self.table.nodes) == self.nodes
        for message in MESSAGES:
            of_message = {route for route, handled in self.handled.items() if message in handled}
            assert set(self.table.all(message)) == of_message
            assert set(self.table.all_here(message)) == {route for route in of_message if not route.node}

    @invariant()
    def finds_a_receiver_wherever_it_is_and_here_first(self):
        for receiver in {route.receiver for route in ROUTES}:
            places = {route for route in self.handled if route.receiver == receiver}
            found = self.table.find(receiver)
            assert found in places if places else found is None
            if Route(receiver) in places:
                assert found == Route(receiver)

    def _receiver(self, route):
        self.handled.setdefault(route, set())
        if route.node:
            self.nodes.add(route.node)

    def _forget(self, route):
        for message in self.handled.pop(route, ()):
            self.everywhere.remove(message, route)
            self.here.remove(message, route)


TestTableAgainstQueues = TableAgainstQueues.TestCase
