"""Domains, keys and signatures: who may say what.

>>> from framewire.security import DomainKey, KeyRing
>>> from framewire.wire import Message
>>> ring = KeyRing([DomainKey("payments", bytes(range(32)))], identities={"payments": ["pay.*"]})
>>> ring.verify(ring.sign(Message(b"pay.order"))).domain
'payments'
"""

from framewire.errors import BadSignature
from framewire.security.curve import Curve
from framewire.security.keyring import KeyRing
from framewire.security.keys import ALGORITHMS, DomainKey
from framewire.security.replay import Replays

__all__ = ["ALGORITHMS", "BadSignature", "Curve", "DomainKey", "KeyRing", "Replays"]
