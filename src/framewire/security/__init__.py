"""Domains, keys and signatures: who may say what.

>>> from framewire.security import DomainKey, KeyRing
>>> from framewire.wire import Message
>>> ring = KeyRing([DomainKey("payments", bytes(range(32)))], identities={"payments": ["pay.*"]})
>>> ring.verify(ring.sign(Message(b"pay.order"))).domain
'payments'
"""

from framewire.errors import BadSignature
from framewire.security.keyring import KeyRing
from framewire.security.keys import ALGORITHMS, DomainKey

__all__ = ["ALGORITHMS", "BadSignature", "DomainKey", "KeyRing"]
