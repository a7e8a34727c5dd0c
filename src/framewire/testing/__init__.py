"""For tests of your own actors: several nodes in one process, time that you move, and faults that repeat.

>>> import asyncio
>>> import msgspec, framewire as fw
>>> from framewire.testing import Cluster, Faults, ManualClock
>>> @fw.message("doc.hello")
... class Hello(msgspec.Struct):
...     name: str
>>> @fw.message("doc.welcome")
... class Welcome(msgspec.Struct):
...     text: str
>>> class Greeter(fw.Actor):
...     @fw.handles(Hello)
...     async def hello(self, hello: Hello) -> Welcome:
...         return Welcome(f"Welcome, {hello.name}")
>>> async def test_a_greeting_from_another_node():
...     async with Cluster(3) as cluster:
...         await cluster[1].host(Greeter())
...         await cluster.settled()
...         welcome = await cluster[0].hub.ask(Hello("Ada"), Welcome)
...         assert welcome.text == "Welcome, Ada"
>>> asyncio.run(test_a_greeting_from_another_node())

Nothing here needs sockets, and with a ``ManualClock`` nothing needs time. Faults come from a seed: the same test
with the same seed loses the same messages, and ``cluster.journal`` tells which.

>>> async def test_a_lost_greeting_is_a_timeout():
...     clock = ManualClock()
...     async with Cluster(2, clock=clock, seed=1, faults=Faults(drop=1.0)) as cluster:
...         await cluster[1].host(Greeter())
...         await cluster.settled()
...         promise = cluster[0].hub.start(Hello("Ada"), Welcome, timeout=30)
...         await clock.advance(31)
...         try:
...             promise.result()
...         except fw.Expired:
...             return [record.fate.value for record in cluster.journal]
>>> asyncio.run(test_a_lost_greeting_is_a_timeout())
['dropped']
"""

from framewire.testing.clock import ManualClock
from framewire.testing.cluster import Cluster
from framewire.testing.faults import Faults
from framewire.testing.journal import Fate, Journal, Record
from framewire.testing.link import Interceptor
from framewire.testing.network import MemoryNetwork
from framewire.testing.transport import MemoryTransport

__all__ = [
    "Cluster",
    "Fate",
    "Faults",
    "Interceptor",
    "Journal",
    "ManualClock",
    "MemoryNetwork",
    "MemoryTransport",
    "Record",
]
