#!/usr/bin/python3
"""A proxy before a PostgreSQL server that loses one answer or one request, as a network does that breaks at the worst moment.

lossy_proxy.py LISTEN SERVER        Unix sockets: .../.s.PGSQL.5432

Orders on stdin:
  answer WORD     the next statement with WORD in it is carried out, and its answer is thrown away
  request WORD    the next statement with WORD in it does not reach the server
  go on           see below
Then the connection is closed on both sides, stdout says what was lost, and whoever connects waits for `go on`. Statements are
seen in simple queries and, through their names, in extended ones; one at a time (no pipelining), not encrypted.
"""
import asyncio
import sys

listen, server = sys.argv[1:3]
order = None              # (which, word)
passage = asyncio.Event()


def say(text):
    print(text, flush=True)


async def message(reader, typed=True):
    head = await reader.readexactly(5 if typed else 4)
    return head + await reader.readexactly(int.from_bytes(head[-4:], 'big') - 4)


class Statements:
    def __init__(self):
        self.prepared, self.portals = {}, {}

    def executed_by(self, m):
        """The text of the statement that this message of a client has executed, if it has."""
        kind, strings = m[:1], m[5:].split(b'\0')
        if kind == b'Q':
            return strings[0]
        if kind == b'P':
            self.prepared[strings[0]] = strings[1]
        elif kind == b'B':
            self.portals[strings[0]] = self.prepared.get(strings[1], b'')
        elif kind == b'E':
            return self.portals.get(strings[0], b'')
        return b''


async def serve(client_in, client_out):
    await passage.wait()
    server_in, server_out = await asyncio.open_unix_connection(server)
    losing = asyncio.Event()

    async def requests():
        global order
        statements = Statements()
        server_out.write(await message(client_in, typed=False))
        while True:
            m = await message(client_in)
            text = statements.executed_by(m)
            if order and order[1] in text:
                which, order = order[0], None
                passage.clear()
                if which == b'request':
                    return say(f'lost the request: {text.decode()}')
                losing.set()
            server_out.write(m)

    async def answers():
        while True:
            m = await message(server_in)
            if losing.is_set():
                tags = []
                while m[:1] != b'Z':  # ready for the next query: this one is done
                    if m[:1] in b'CE':
                        tags.append(m[5:].strip(b'\0').decode())
                    m = await message(server_in)
                return say(f'lost the answer: {", ".join(tags)}')
            client_out.write(m)

    tasks = [asyncio.create_task(requests()), asyncio.create_task(answers())]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    client_out.close()
    server_out.close()


async def main():
    global order
    passage.set()
    await asyncio.start_unix_server(serve, listen)
    orders = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(orders), sys.stdin)
    say('ready')
    while line := (await orders.readline()).strip():
        if line == b'go on':
            passage.set()
        else:
            order = tuple(line.split(b' ', 1))
        say(f'order: {line.decode()}')


asyncio.run(main())
