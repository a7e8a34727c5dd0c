"""Which messages belong to which domain, and whether they are from someone in it.

A domain is a set of message identities whose senders share a key. A key ring is immutable: to rotate a key,
make another ring and hand it over.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from hmac import compare_digest
from pathlib import Path
from types import MappingProxyType

from framewire.errors import BadSignature, ConfigError, UsageError
from framewire.security import keyfile
from framewire.security.keys import DomainKey
from framewire.wire import Message

__all__ = ["KeyRing"]

Name = str | bytes


class KeyRing:
    """The keys of one node.

    ``keys``: the first key of each domain signs, all of them are accepted, so a key can be replaced while
    messages made with the old one are still under way.
    ``identities``: the message identities of each domain; a trailing ``*`` stands for any ending, and the
    longest match wins. What is listed nowhere belongs to the nameless domain, which is not signed.
    ``unsigned``: domains whose messages need no signature: all of them, or only the identities listed.
    ``once``: domains in which no two honest messages have the same content, or only the identities listed: for
    bodies with something unique in them. The same content again is then a replay, whatever else is different.
    """

    def __init__(
        self,
        keys: Iterable[DomainKey] = (),
        identities: Mapping[str, Iterable[Name]] | None = None,
        unsigned: Mapping[str, Iterable[Name]] | Iterable[str] = (),
        once: Mapping[str, Iterable[Name]] | Iterable[str] = (),
    ) -> None:
        self._keys: dict[str, tuple[DomainKey, ...]] = {}
        for key in keys:
            self._keys[key.domain] = (*self._keys.get(key.domain, ()), key)
        self._unsigned, self._once = _by_domain(unsigned), _by_domain(once)
        self._identities = {domain: tuple(map(_raw, names)) for domain, names in (identities or {}).items()}
        self._exact, self._prefixes = self._index()

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> KeyRing:
        """The ring that a TOML file describes; ``ConfigError`` if anyone but its owner can read the file."""
        return cls._parsed(keyfile.read(Path(path)), str(path), os.environ)

    @classmethod
    def from_env(cls, variable: str = "FRAMEWIRE_KEYS", environ: Mapping[str, str] = os.environ) -> KeyRing:
        """The ring that an environment variable describes, in the same TOML as a file."""
        return cls._parsed(environ.get(variable, ""), f"${variable}", environ)

    @classmethod
    def _parsed(cls, text: str, source: str, environ: Mapping[str, str]) -> KeyRing:
        try:
            return cls(*keyfile.parse(text, source, environ))
        except ConfigError:
            raise
        except UsageError as problem:
            raise ConfigError(source, [str(problem)]) from None

    @property
    def domains(self) -> frozenset[str]:
        """The domains that this ring can take part in, the nameless one apart."""
        return frozenset(self._keys) | frozenset(self._unsigned)

    @property
    def keys(self) -> Mapping[str, tuple[DomainKey, ...]]:
        """The keys of each domain, the one that signs first. For whoever verifies elsewhere, such as Spark."""
        return MappingProxyType(self._keys)

    @property
    def identities(self) -> Mapping[str, tuple[bytes, ...]]:
        """The message identities of each domain, as they were given."""
        return MappingProxyType(self._identities)

    @property
    def unsigned(self) -> Mapping[str, frozenset[bytes]]:
        """The domains that need no signature, each with the identities that need none; with none, it is all."""
        return MappingProxyType(self._unsigned)

    def domain_of(self, identity: bytes) -> str:
        """The domain that a message identity belongs to; empty where none claims it."""
        domain = self._exact.get(identity)
        if domain is None:
            domain = next((name for prefix, name in self._prefixes if identity.startswith(prefix)), "")
        return domain

    def is_signed(self, domain: str, identity: bytes) -> bool:
        """Whether messages of this identity carry a signature in this domain."""
        if not domain:
            return False
        exempt = self._unsigned.get(domain)
        return exempt is None or (bool(exempt) and identity not in exempt)

    def is_unique(self, domain: str, identity: bytes) -> bool:
        """Whether honest messages of this identity never have the same content twice."""
        alone = self._once.get(domain)
        return alone is not None and (not alone or identity in alone)

    def sign(self, message: Message, *, domain: str | None = None) -> Message:
        """The message in its domain, with the signature that the domain asks for.

        ``domain`` overrides where the identity belongs: service messages travel in every domain.
        """
        name = self.domain_of(message.identity) if domain is None else domain
        if not self.is_signed(name, message.identity):
            return message.replace(domain=name, signature=b"")
        keys = self._keys.get(name)
        if not keys:
            raise UsageError(f"domain: this ring has no key for {name!r}, so {message.message_id} cannot be sent")
        return message.replace(domain=name, signature=keys[0].mac(message))

    def verify(self, message: Message, *, domain: str | None = None) -> Message:
        """The message itself if it comes from its domain, or ``BadSignature``. ``domain``: see ``sign``."""
        expected = self.domain_of(message.identity) if domain is None else domain
        if message.domain != expected:
            raise self._refusal(message, f"messages of this identity belong to domain {expected!r}")
        if not self.is_signed(expected, message.identity):
            return message
        if expected not in self._keys:
            raise self._refusal(message, "there is no key for this domain here")
        if not message.signature:
            raise self._refusal(message, "the message is not signed")
        if isinstance(message.version, bytes):
            raise self._refusal(message, "a V1 message cannot be signed")
        if not any(compare_digest(key.mac(message), message.signature) for key in self._keys[expected]):
            raise self._refusal(message, "the signature does not match")
        return message

    def signer(self, like: Message) -> Callable[[bytes], bytes] | None:
        """What signs the bodies of messages that are like one in all else; None where they are not signed."""
        domain = self.domain_of(like.identity)
        return self._keys[domain][0].macs(like) if self.is_signed(domain, like.identity) else None

    def verifier(self, like: Message) -> Callable[[bytes, bytes], bool] | None:
        """What tells whether a body and its signature match, in messages that are like a good one in all else."""
        domain = self.domain_of(like.identity)
        if not self.is_signed(domain, like.identity):
            return None
        macs = [key.macs(like) for key in self._keys[domain]]
        if len(macs) > 1:
            return lambda body, signature: any(compare_digest(mac(body), signature) for mac in macs)
        mac = macs[0]
        return lambda body, signature: compare_digest(mac(body), signature)

    def rotated(self, key: DomainKey) -> KeyRing:
        """A ring that signs with a new key and still accepts the domain's former ones."""
        return self._with_keys(key.domain, (key, *self._keys.get(key.domain, ())))

    def retired(self, domain: str) -> KeyRing:
        """A ring that accepts nothing but a domain's signing key any more."""
        return self._with_keys(domain, self._keys.get(domain, ())[:1])

    def _with_keys(self, domain: str, keys: tuple[DomainKey, ...]) -> KeyRing:
        others = {**self._keys, domain: keys}
        every = [key for group in others.values() for key in group]
        return KeyRing(every, self._identities, self._unsigned, self._once)

    def _index(self) -> tuple[dict[bytes, str], list[tuple[bytes, str]]]:
        exact: dict[bytes, str] = {}
        prefixes: dict[bytes, str] = {}
        for domain, names in self._identities.items():
            for name in names:
                table, identity = (prefixes, name[:-1]) if name.endswith(b"*") else (exact, name)
                if table.setdefault(identity, domain) != domain:
                    shown = name.decode(errors="replace")
                    raise UsageError(f"identities: {shown!r} is in {table[identity]!r} and in {domain!r}")
        return exact, sorted(prefixes.items(), key=lambda item: -len(item[0]))

    @staticmethod
    def _refusal(message: Message, detail: str) -> BadSignature:
        refusal = BadSignature(detail, message_id=message.message_id, correlation_id=message.correlation_id)
        refusal.domain = message.domain
        return refusal

    def __repr__(self) -> str:
        signed = [f"{domain} ({', '.join(k.algorithm for k in keys)})" for domain, keys in self._keys.items()]
        unsigned = [f"{domain} (unsigned)" for domain in self._unsigned if domain not in self._keys]
        return f"<KeyRing {', '.join(signed + unsigned) or 'empty'}>"


def _raw(name: Name) -> bytes:
    return name.encode() if isinstance(name, str) else name


def _by_domain(told: Mapping[str, Iterable[Name]] | Iterable[str]) -> dict[str, frozenset[bytes]]:
    """Domains with the identities that were listed; none stands for all of them."""
    named = told if isinstance(told, Mapping) else dict.fromkeys(told, ())
    return {domain: frozenset(map(_raw, names)) for domain, names in named.items()}
