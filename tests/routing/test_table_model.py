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
receivers = st.sampled_from(sorted({route.receiver for route in ROUTES}))


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

    @rule(gone=st.lists(routes))
    def remove_receivers(self, gone):
        self.table.remove_receivers(gone)
        for route in gone:
            self._forget(route)

    @rule(node=nodes, gone=st.dictionaries(messages, st.sets(receivers)))
    def remove_messages(self, node, gone):
        self.table.remove_messages(node, gone)
        named = set()
        for message, named_receivers in gone.items():
            there = {route for route, handled in self.handled.items() if route.node == node and message in handled}
            told = {Route(receiver, node) for receiver in named_receivers} if named_receivers else there
            named |= told
            for route in told & there:
                self.handled[route].remove(message)
                self.everywhere.remove(message, route)
        for route in named:
            if not self.handled.get(route):
                self._forget(route)

    @rule(node=nodes, most=st.integers(1, 6))
    def remove_some(self, node, most):
        before = {route: set(handled) for route, handled in self.handled.items() if route.node == node}
        messages_gone = self.table.remove_some(node, most)
        left = {route: handled for route, handled in self.table.routes.items() if route.node == node}
        removed = sum(1 + len(handled) for handled in before.values()) - self.table.routes_of(node)
        assert min(1, len(before)) <= removed <= most + 1
        assert all(before[route] >= handled for route, handled in left.items())
        for route, handled in before.items():
            for message in handled - left.get(route, frozenset()):
                assert message in messages_gone
                self.handled[route].remove(message)
                self.everywhere.remove(message, route)
            if route not in left:
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
        for node in NODES:
            of_node = {route: handled for route, handled in self.handled.items() if route.node == node}
            assert set(self.table.receivers_of(node)) == set(of_node)
            assert {route: set(self.table.handled_by(route)) for route in of_node} == of_node
            if node:
                assert self.table.routes_of(node) == sum(1 + len(handled) for handled in of_node.values())
        for message in MESSAGES:
            of_message = {route for route, handled in self.handled.items() if message in handled}
            assert set(self.table.all(message)) == of_message
            assert self.table.is_handled(message) is bool(of_message)
            assert set(self.table.all_here(message)) == {route for route in of_message if not route.node}
            alike = {known for handled in self.handled.values() for known in handled}
            alike = {known for known in alike if known.identity == message.identity}
            found = self.table.alike(message)
            assert set(found) == alike
            assert len(found) == len(alike)
            assert self.table.alike(message, 1) == found[:1]
            versions = len({known.version for known in alike})
            assert len({known.version for known in found[:versions]}) == versions, "one of each version first"
        for route, handled in self.handled.items():
            assert self.table.handled_by(route) == handled
        for node in self.nodes:
            assert set(self.table.receivers_of(node)) == {route for route in self.handled if route.node == node}

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
