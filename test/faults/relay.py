"""A relay between the proxy and a PostgreSQL server: counts round trips, delays, and cuts connections.

It reads the messages that pass, so it knows which of them is the k-th, and what belongs to a login. TLS is declined
(as a server without it does), since nothing could be read then.
"""

import asyncio
import collections
import struct
import threading

SPECIAL_REQUESTS = {80877103: "tls", 80877104: "gss"}  # answered with N, by us
CANCEL_REQUEST = 80877102
CLIENT, SERVER = "client", "server"


class Messages:
    """Finds the messages of one direction in the chunks it is given."""

    def __init__(self, has_startup):
        self.rest, self.has_startup, self.skip = b"", has_startup, 0

    def cut(self, data):
        """[(kind, bytes)] of the messages that are complete now; kind "" is a start-up packet."""
        data, at, found = self.rest + data, 0, []
        while True:
            head = 0 if self.has_startup else 1
            if len(data) - at < head + 4:
                break
            size = head + struct.unpack_from("!I", data, at + head)[0]
            if len(data) - at < size:
                break
            found.append((chr(data[at]) if head else "", data[at : at + size]))
            at += size
            if not head:
                code = struct.unpack_from("!I", found[-1][1], 4)[0]
                self.has_startup = code in SPECIAL_REQUESTS
        self.rest = data[at:]
        return found


class Side(asyncio.Protocol):
    """One socket of a connection."""

    def __init__(self, connection, name):
        self.connection, self.name = connection, name
        self.transport, self.queue, self.messages = None, collections.deque(), Messages(name == CLIENT)
        self.has_ended = False

    def connection_made(self, transport):
        self.transport = transport
        self.connection.joined(self)

    def data_received(self, data):
        self.connection.received(self, data)

    def eof_received(self):
        self.connection.ended(self)
        return True  # the other direction may go on

    def connection_lost(self, error):
        self.connection.lost(self)

    # Whoever sends to this side stops reading while it does not take any more.
    def pause_writing(self):
        self.connection.other(self).pause()

    def resume_writing(self):
        self.connection.other(self).resume()

    def pause(self):
        if self.transport and not self.transport.is_closing():
            self.transport.pause_reading()

    def resume(self):
        if self.transport and not self.transport.is_closing():
            self.transport.resume_reading()

    def later(self, delay, action):
        """In the order of the calls, whatever becomes of the delay meanwhile."""
        self.queue.append(action)
        self.connection.relay.loop.call_later(delay, self.next) if delay else self.next()

    def next(self):
        self.queue.popleft()()


class Connection:
    """A client's connection and the one to the server that belongs to it."""

    def __init__(self, relay):
        self.relay, self.parameters = relay, {}
        self.sides = {name: Side(self, name) for name in (CLIENT, SERVER)}
        self.is_ready = False  # logged in
        self.is_cut = False
        self.has_heard = True  # since it last spoke; what it says next begins a round trip
        self.waiting = []  # for the server

    @property
    def user(self):
        return self.parameters.get("user")

    def other(self, side):
        return self.sides[SERVER if side.name == CLIENT else CLIENT]

    def joined(self, side):
        if side.name == SERVER:
            for data in self.waiting:
                side.transport.write(data)
            return
        self.relay.connections.add(self)
        self.relay.loop.create_task(self.dial())

    async def dial(self):
        try:
            await self.relay.loop.create_connection(lambda: self.sides[SERVER], *self.relay.target)
        except OSError:
            self.close()

    def received(self, side, data):
        if self.is_cut:
            return
        passed = []
        for kind, message in side.messages.cut(data):
            if not self.saw(side, kind, message):
                continue
            fate = self.relay.fate_of(self, side.name)
            if fate != "cut":
                passed.append(message)
                if side.name == CLIENT and self.is_ready:
                    self.spoke()
            if fate != "pass":
                self.is_cut = True
                break
        if passed:
            self.send(side, b"".join(passed))
        if self.is_cut:
            side.later(self.relay.delay, self.close)

    def saw(self, side, kind, message):
        """False: it is not for the server."""
        if side.name == CLIENT and kind == "":
            return self.saw_startup(message)
        if side.name == SERVER and kind == "Z" and not self.is_ready:
            side.later(self.relay.delay, self.logged_in)
        return True

    def saw_startup(self, message):
        code = struct.unpack_from("!I", message, 4)[0]
        if code in SPECIAL_REQUESTS:
            self.sides[CLIENT].transport.write(b"N")
            return False
        if code != CANCEL_REQUEST:
            words = message[8:].split(b"\0")
            self.parameters = {k.decode(): v.decode() for k, v in zip(words[::2], words[1::2]) if k}
        return True

    def logged_in(self):
        self.is_ready = self.has_heard = True

    def spoke(self):
        if self.has_heard:
            self.has_heard = False
            self.relay.count(self)

    def send(self, side, data):
        to = self.other(side)

        def deliver():
            if side.name == SERVER and data[:1] != b"A":  # a notification answers nothing
                self.has_heard = True
            if to.transport is None:
                self.waiting.append(data)
            elif not to.transport.is_closing():
                to.transport.write(data)

        side.later(self.relay.delay, deliver)

    def ended(self, side):
        side.has_ended = True

        def pass_on():
            to = self.other(side)
            if to.transport is None or to.has_ended:
                self.close()
            elif not to.transport.is_closing():
                to.transport.write_eof()

        side.later(self.relay.delay, pass_on)

    def lost(self, side):
        other = self.other(side)
        if other.transport is not None and not other.transport.is_closing():
            side.later(self.relay.delay, other.transport.close)
        self.forget()

    def close(self):
        self.forget()
        for side in self.sides.values():
            if side.transport is not None and not side.transport.is_closing():
                side.transport.abort()

    def forget(self):
        self.relay.connections.discard(self)


class Relay:
    """Runs on a thread of its own. All that is here may be called from any thread.

    delay: seconds for each direction; a link whose round trip is 20 ms has 0.01. May be changed at any time.
    """

    def __init__(self, target_port, target_host="127.0.0.1", delay=0.0, port=0):
        self.target, self.delay = (target_host, target_port), delay
        self.loop, self.connections = asyncio.new_event_loop(), set()
        self.lock, self.counted, self.cuts = threading.Lock(), collections.Counter(), []
        self.server = self.loop.run_until_complete(
            self.loop.create_server(lambda: Connection(self).sides[CLIENT], "127.0.0.1", port)
        )
        self.port = self.server.sockets[0].getsockname()[1]
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        if self.loop.is_closed():
            return
        self.call(self.drop_all)
        self.loop.call_soon_threadsafe(self.server.close)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(10)
        self.loop.close()

    def call(self, function):
        """On the relay's thread; its result."""

        async def run():
            return function()

        return asyncio.run_coroutine_threadsafe(run(), self.loop).result(10)

    # --- counting

    def count(self, connection):
        with self.lock:
            self.counted[connection.user] += 1

    def trips(self, user=None):
        """Round trips since the last reset, of that user's connections: how often a client, logged in, spoke after it
        had heard something (or for the first time). What it sends without having heard anything is the same trip."""
        with self.lock:
            return sum(self.counted.values()) if user is None else self.counted[user]

    def reset(self):
        with self.lock:
            self.counted.clear()

    # --- faults

    def cut_at(self, side, number, is_passed=False, user=None):
        """The number-th message of that side (CLIENT or SERVER) from now on, whichever connection (of that user) it is
        on, ends its connection; it is passed on only if is_passed. Logins count, too."""
        with self.lock:
            self.cuts.append([side, number, is_passed, user])

    def fate_of(self, connection, side):
        """ "pass", "cut" (before the message) or "end" (behind it)."""
        if not self.cuts:
            return "pass"
        with self.lock:
            for cut in self.cuts:
                if cut[0] != side or cut[3] not in (None, connection.user):
                    continue
                cut[1] -= 1
                if cut[1] <= 0:
                    self.cuts.remove(cut)
                    return "end" if cut[2] else "cut"
        return "pass"

    def drop_all(self):
        """On the relay's thread."""
        for connection in list(self.connections):
            connection.close()

    def drop(self):
        """Ends every connection at once."""
        self.call(self.drop_all)
