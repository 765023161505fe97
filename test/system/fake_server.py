"""A server that is no PostgreSQL: it lets everybody in and does what tests want to see done with."""

import socket
import struct
import threading

import pytest

import wire


class Server:
    """Answers `select WORD` with that word. refuse(stream): what it does about a client that asks for another protocol
    than 3.0; the connection ends then, unless it returns True. tls: the answer to an SSLRequest. asked: the versions;
    streams: of those let in."""

    def __init__(self, refuse=lambda stream: True, tls=b"N"):
        self.refuse, self.tls, self.asked, self.streams = refuse, tls, [], []
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.port = self.listening.getsockname()[1]
        threading.Thread(target=self.run, daemon=True).start()

    def entry(self):
        return "host=127.0.0.1 port=%d" % self.port

    def run(self):
        while True:
            try:
                connection, _ = self.listening.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        try:
            self.talk(connection)
        except (OSError, ValueError, struct.error):
            pass  # the other side has gone

    def talk(self, connection):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        stream = connection.makefile("rwb")
        with connection, stream:
            version = self.first(stream)
            if version == wire.SSL_REQUEST:
                stream.write(self.tls)
                stream.flush()
                version = self.first(stream)
            self.asked.append(version)
            if version != wire.PROTOCOL_3_0 and self.refuse(stream) is not True:
                return
            stream.write(wire.message("R", struct.pack("!I", 0)) + wire.message("K", struct.pack("!II", 4711, 1)))
            stream.write(wire.message("Z", b"I"))
            stream.flush()
            self.streams.append(stream)
            while (head := stream.read(5)) and head[:1] != b"X":
                body = stream.read(struct.unpack("!I", head[1:])[0] - 4)
                if head[:1] == b"Q":
                    self.say(stream, body[:-1].decode().removeprefix("select "))

    @staticmethod
    def first(stream):
        """What a packet without a type begins with: a version or the code of a request."""
        size = struct.unpack("!I", stream.read(4))[0]
        return struct.unpack("!I", stream.read(size - 4)[:4])[0]

    @staticmethod
    def say(stream, word):
        """The whole answer to a query, asked for or not."""
        value = word.encode()
        column = b"word\0" + struct.pack("!IhIhih", 0, 0, 25, -1, -1, 0)
        stream.write(wire.message("T", struct.pack("!h", 1) + column))
        stream.write(wire.message("D", struct.pack("!hI", 1, len(value)) + value))
        stream.write(wire.message("C", b"SELECT 1\0") + wire.message("Z", b"I"))
        stream.flush()


@pytest.fixture
def server():
    """server(refuse, tls) makes one."""
    made = []

    def make(*arguments, **more):
        made.append(Server(*arguments, **more))
        return made[-1]

    yield make
    for one in made:
        one.listening.close()
