"""A delay line in user space: TCP connections to ports of 127.0.0.1 are passed on to targets, every byte late.

  delay.py PORT TARGET...     port PORT goes to the first target, PORT + 1 to the second, and so on

A line on standard input is the delay in milliseconds from then on, of either direction; bytes keep their order. It
ends with its standard input.
"""

import asyncio
import sys
import time

delay_s = 0.0


async def pipe(reader, writer):
    """Passes bytes on, each piece when it is due."""
    queue = asyncio.Queue(1024)

    async def send():
        while True:
            due, data = await queue.get()
            await asyncio.sleep(max(0, due - time.monotonic()))
            if not data:
                break
            writer.write(data)
            await writer.drain()
        writer.close()

    sender = asyncio.create_task(send())
    try:
        while data := await reader.read(65536):
            await queue.put((time.monotonic() + delay_s, data))
    except OSError:
        pass
    await queue.put((0, b""))
    try:
        await sender
    except OSError:
        pass


def passed_on(host, port):
    """The handler of connections that go to a target."""

    async def handle(reader, writer):
        try:
            there, back = await asyncio.wait_for(asyncio.open_connection(host, int(port)), 5)
        except (OSError, asyncio.TimeoutError):
            writer.close()
            return
        await asyncio.gather(pipe(reader, back), pipe(there, writer))

    return handle


async def main():
    global delay_s
    for at, target in enumerate(sys.argv[2:]):
        host, port = target.rsplit(":", 1)
        await asyncio.start_server(passed_on(host, port), "127.0.0.1", int(sys.argv[1]) + at)
    orders = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(orders)
    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, sys.stdin)
    while line := await orders.readline():
        delay_s = float(line) / 1000


asyncio.run(main())
