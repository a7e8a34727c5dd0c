"""gRPC on asyncio, with bytes for messages; it knows no calls without an answer, so tells are a stream."""

import asyncio

import grpc
from contract import AsyncClient, loop_factory, main, until_ended

LARGE = [("grpc.max_receive_message_length", 1 << 26), ("grpc.max_send_message_length", 1 << 26)]


def serve(ready):
    notes = 0

    async def answer(body, _):
        return body

    async def note(bodies, _):
        nonlocal notes
        async for _ in bodies:
            notes += 1
        return b""

    async def count(_, __):
        return b"%d" % notes

    async def run():
        server = grpc.aio.server(options=LARGE)
        handlers = {
            "answer": grpc.unary_unary_rpc_method_handler(answer),
            "note": grpc.stream_unary_rpc_method_handler(note),
            "count": grpc.unary_unary_rpc_method_handler(count),
        }
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("Echo", handlers),))
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        ready(f"127.0.0.1:{port}")
        await until_ended()
        await server.stop(None)

    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(run())


class Asking(AsyncClient):
    async def open(self, address):
        self.channel = grpc.aio.insecure_channel(address, options=LARGE)
        self.answer = self.channel.unary_unary("/Echo/answer")
        self.count = self.channel.unary_unary("/Echo/count")
        self.notes = self.channel.stream_unary("/Echo/note")()

    async def one(self, body):
        return await self.answer(body)

    async def note(self, body):
        await self.notes.write(body)

    async def counted(self):
        return int(await self.count(b""))

    async def shut(self):
        await self.notes.done_writing()
        await self.notes
        await self.channel.close()


if __name__ == "__main__":
    main(serve, Asking)
