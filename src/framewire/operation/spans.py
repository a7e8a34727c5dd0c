"""A span of OpenTelemetry's for everything that a handler does, by its conventions for messaging.

A flow is a trace: the trace id is made of the correlation id, so the spans of all nodes come together although no
message carries a trace, and so do those that ``framewire pipeline export-traces`` writes. Where spans go is up to
the tracer provider that the program, or ``opentelemetry-instrument``, has set.

A handler is wrapped when its actor is hosted. A node without spans knows nothing of this, and spends nothing on it.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing, contextmanager
from importlib.util import find_spec
from types import CodeType
from typing import TYPE_CHECKING, Any

from framewire._version import __version__
from framewire.cluster import Node
from framewire.errors import UsageError
from framewire.node.actor import Actor, Handler, Kind
from framewire.node.cell import Cell
from framewire.node.context import Context
from framewire.wire.message import readable

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer, TracerProvider

__all__ = ["SpanNode", "flow_ids"]

_SERVICE = (b"KINO.", b"FRAMEWIRE.")
"""Messages by which nodes run the cluster, and not the program."""


class SpanNode(Node):
    """A node whose handlers make spans. ``provider`` is the process's own unless given."""

    def __init__(self, *, provider: TracerProvider | None = None, **options: Any) -> None:
        self._tracer = _tracer(provider)
        super().__init__(**options)

    def _cell(self, make: Callable[[], Actor], **options: Any) -> Cell:
        return _SpanCell(
            self._tracer,
            self._core,
            make,
            prepare=self._adopt,
            withdraw=self._withdraw,
            gone=self._forget,
            **options,
        )


def flow_ids(correlation_id: bytes) -> tuple[int, int]:
    """The trace that a flow is, and the span that all of its spans are below."""
    trace = hashlib.sha256(correlation_id).hexdigest()[:32]
    root = hashlib.sha256(f"{trace}|flow".encode()).hexdigest()[:16]
    return int(trace, 16), int(root, 16)


def _tracer(provider: TracerProvider | None) -> Tracer:
    if find_spec("opentelemetry") is None or find_spec("opentelemetry.sdk") is None:
        raise UsageError("node.spans: OpenTelemetry's SDK is not installed: pip install 'framewire[otel]'")
    from opentelemetry import trace  # noqa: PLC0415 - optional

    return trace.get_tracer("framewire", __version__, provider)


class _SpanCell(Cell):
    """An actor whose handlers make spans, those of its successors after a restart included."""

    def __init__(self, tracer: Tracer, *told: Any, **options: Any) -> None:
        self._tracer = tracer
        super().__init__(*told, **options)

    def _bind(self) -> None:
        super()._bind()
        for handler in self.by_kind.values():
            if handler.message_type.message_id.identity.startswith(_SERVICE):
                continue
            spans = _Spans(self._tracer, handler)
            handler.function = _WRAPPERS[handler.kind](spans)
            handler.takes_context = True


class _Spans:
    """Makes the spans of one handler."""

    def __init__(self, tracer: Tracer, handler: Handler) -> None:
        self._tracer = tracer
        self.function = handler.function
        self._takes_context = handler.takes_context
        message = handler.message_id if handler.partitions == 1 else handler.message_type.message_id
        self._name = f"process {message}"
        self._about: dict[str, str | int] = {
            "messaging.system": "framewire",
            "messaging.operation.name": "process",
            "messaging.operation.type": "process",
            "messaging.destination.name": readable(message.identity),
            "framewire.message.version": message.version if isinstance(message.version, int) else 0,
            "framewire.handler": handler.name,
        }

    @contextmanager
    def span(self, payload: Any, ctx: Context) -> Iterator[tuple[Any, ...]]:
        """A span around a handler; what the handler is called with."""
        from opentelemetry.trace import (  # noqa: PLC0415 - optional, and loaded by now
            NonRecordingSpan,
            SpanContext,
            SpanKind,
            TraceFlags,
            set_span_in_context,
        )

        flow = ctx.correlation_id
        trace, root = flow_ids(flow)
        above = SpanContext(trace, root, is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED))
        about = self._about | {"messaging.message.conversation_id": readable(flow)}
        if ctx.partition:
            about["messaging.destination.partition.id"] = readable(ctx.partition)
        with self._tracer.start_as_current_span(
            self._name,
            context=set_span_in_context(NonRecordingSpan(above)) if flow else None,
            kind=SpanKind.CONSUMER,
            attributes=about,
        ) as span:
            try:
                yield (payload, ctx) if self._takes_context else (payload,)
            except Exception as problem:
                span.set_attribute("error.type", type(problem).__qualname__)
                raise


class _Wrapped:
    """A function around a handler; to whoever looks for what blocks the event loop it is the handler itself."""

    def __init__(self, spans: _Spans) -> None:
        self._spans = spans

    @property
    def __code__(self) -> CodeType | None:
        return getattr(self._spans.function, "__code__", None)


class _Coroutine(_Wrapped):
    async def __call__(self, payload: Any, ctx: Context) -> Any:
        with self._spans.span(payload, ctx) as arguments:
            return await self._spans.function(*arguments)


class _Stream(_Wrapped):
    async def __call__(self, payload: Any, ctx: Context) -> AsyncIterator[Any]:
        with self._spans.span(payload, ctx) as arguments:
            async with aclosing(self._spans.function(*arguments)) as items:
                async for item in items:
                    yield item


class _Plain(_Wrapped):
    def __call__(self, payload: Any, ctx: Context) -> Any:
        with self._spans.span(payload, ctx) as arguments:
            return self._spans.function(*arguments)


_WRAPPERS: dict[Kind, Callable[[_Spans], Callable[..., Any]]] = {
    Kind.COROUTINE: _Coroutine,
    Kind.STREAM: _Stream,
    Kind.THREAD: _Plain,
    Kind.INLINE: _Plain,
}
