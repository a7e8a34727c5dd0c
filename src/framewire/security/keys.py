"""A key of a domain, and the MAC it makes.

Which parts of a message are signed is the wire's business (``layout.SIGNED``); here they are only joined.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass, field
from operator import attrgetter

from framewire.errors import UsageError
from framewire.wire import Message
from framewire.wire.layout import SIGNED

__all__ = ["ALGORITHMS", "MIN_KEY_BYTES", "DomainKey"]

ALGORITHMS = ("sha256", "sha512", "sha1", "md5")
"""What a key can be used with. The last two are for peers that know nothing better, and must be named."""

MIN_KEY_BYTES = 32
"""What a key has at least: as much as the digest of SHA-256, so that guessing the key is no easier than that."""

_signed_parts = attrgetter(*SIGNED)
_VERSION, _BODY = SIGNED.index("version"), SIGNED.index("body")
_INNER, _OUTER = (bytes(byte ^ mask for byte in range(256)) for mask in (0x36, 0x5C))
"""What HMAC makes of the bytes of a key, as tables for ``bytes.translate``."""


@dataclass(frozen=True, slots=True)
class DomainKey:
    """A secret that the members of a domain share. The key itself is never shown."""

    domain: str
    key: bytes = field(repr=False)
    algorithm: str = "sha256"
    insecure_short_keys: bool = field(default=False, repr=False, compare=False)
    """Whether a key of less than 32 bytes is taken: for those that old kino peers have, and for nothing else."""

    def __post_init__(self) -> None:
        if not isinstance(self.domain, str) or not self.domain:
            raise UsageError(f"domain: {self.domain!r} is not a name; the nameless domain is never signed")
        if not isinstance(self.key, bytes) or not self.key:
            raise UsageError(f"key: the key of domain {self.domain!r} must be bytes, at least one")
        if len(self.key) < MIN_KEY_BYTES and self.insecure_short_keys is not True:
            raise UsageError(
                f"key: that of domain {self.domain!r} has {len(self.key)} bytes; it takes at least {MIN_KEY_BYTES} "
                f"random ones: openssl rand -base64 32. For a key that old kino peers have, say "
                f"insecure_short_keys = true"
            )
        if self.algorithm not in ALGORITHMS:
            known = ", ".join(ALGORITHMS)
            raise UsageError(f"algorithm: {self.algorithm!r} for domain {self.domain!r}; there are {known}")

    def mac(self, message: Message) -> bytes:
        """The signature that this key gives a message."""
        if len(message.body_frames) == 1:
            return hmac.digest(self.key, b"".join(_parts(message)), self.algorithm)
        # A body of several frames is their concatenation; it may be large, and is not copied to be signed.
        before, after = self._around(message)
        made = hmac.new(self.key, before, self.algorithm)
        for frame in message.body_frames:
            made.update(frame)
        made.update(after)
        return made.digest()

    def _around(self, message: Message) -> tuple[bytes, bytes]:
        """Return what is signed before the body, and after it."""
        parts = _parts(message.replace(body=b""))
        return b"".join(parts[:_BODY]), b"".join(parts[_BODY + 1 :])

    def macs(self, like: Message) -> Callable[[bytes], bytes]:
        """What makes the signatures of messages that are like one in all that is signed but the body."""
        before, after = self._around(like)
        inner, outer = self.pads
        # Two hashes that have begun, and not an HMAC that has: copies of those take two thirds of the time.
        begun, sealing = hashlib.new(self.algorithm, inner + before).copy, hashlib.new(self.algorithm, outer).copy

        def mac(body: bytes) -> bytes:
            made, sealed = begun(), sealing()
            made.update(body + after)
            sealed.update(made.digest())
            return sealed.digest()

        return mac

    @property
    def pads(self) -> tuple[bytes, bytes]:
        """What the two hashes of an HMAC begin with; as secret as the key itself."""
        block = hashlib.new(self.algorithm).block_size
        secret = self.key if len(self.key) <= block else hashlib.new(self.algorithm, self.key).digest()
        filled = secret.ljust(block, b"\0")
        return filled.translate(_INNER), filled.translate(_OUTER)


def _parts(message: Message) -> list[bytes]:
    parts = [*_signed_parts(message)]
    try:
        parts[_VERSION] = parts[_VERSION].to_bytes(2, "little")
    except (AttributeError, OverflowError):
        raise UsageError(f"version: {message.version!r} cannot be signed; upgrade() V1 first") from None
    return parts
