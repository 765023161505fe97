"""A PostgreSQL protocol client that sends exactly the bytes it is told to, and shows exactly what came back."""

import base64
import hashlib
import hmac
import os
import socket
import struct

PROTOCOL_3_0 = 0x30000
SSL_REQUEST = 80877103
GSSENC_REQUEST = 80877104
CANCEL_REQUEST = 80877102


class Closed(Exception):
    """The other side closed the connection where a message was expected."""


class PgError(Exception):
    """An ErrorResponse; `said` is all that came before and with it."""

    def __init__(self, fields, said=()):
        super().__init__("%s %s: %s" % (fields.get("S"), fields.get("C"), fields.get("M")))
        self.fields, self.said = fields, said
        self.severity, self.code, self.message = fields.get("S"), fields.get("C"), fields.get("M")


# ------------------------------------------------------------------ messages to send


def message(kind, body=b""):
    return kind.encode() + struct.pack("!I", len(body) + 4) + body


def cstr(text):
    return (text if isinstance(text, bytes) else text.encode()) + b"\0"


def startup(params, version=PROTOCOL_3_0):
    body = struct.pack("!I", version) + b"".join(cstr(k) + cstr(v) for k, v in params.items()) + b"\0"
    return struct.pack("!I", len(body) + 4) + body


def query(sql):
    return message("Q", cstr(sql))


def parse(name, sql, types=()):
    return message(
        "P", cstr(name) + cstr(sql) + struct.pack("!H", len(types)) + b"".join(struct.pack("!I", t) for t in types)
    )


def bind(portal, name, params=()):
    body = cstr(portal) + cstr(name) + struct.pack("!HH", 0, len(params))
    for value in params:
        if value is None:
            body += struct.pack("!i", -1)
        else:
            data = value if isinstance(value, bytes) else str(value).encode()
            body += struct.pack("!I", len(data)) + data
    return message("B", body + struct.pack("!H", 0))


def describe(kind, name=""):
    return message("D", kind.encode() + cstr(name))


def close(kind, name=""):
    return message("C", kind.encode() + cstr(name))


def execute(portal="", rows=0):
    return message("E", cstr(portal) + struct.pack("!I", rows))


def sync():
    return message("S")


def flush():
    return message("H")


def copy_data(data):
    return message("d", data)


def copy_done():
    return message("c")


def copy_fail(reason):
    return message("f", cstr(reason))


def function_call(oid, args=()):
    """Arguments and result in text format."""
    body = struct.pack("!IHH", oid, 0, len(args))
    for value in args:
        data = str(value).encode()
        body += struct.pack("!I", len(data)) + data
    return message("F", body + struct.pack("!H", 0))


def terminate():
    return message("X")


def cancel_request(key):
    return struct.pack("!II", 8 + len(key), CANCEL_REQUEST) + key


def extended(sql, params=(), name="", types=()):
    """One statement through the extended protocol, with its Sync."""
    return parse(name, sql, types) + bind("", name, params) + describe("P") + execute() + sync()


# ------------------------------------------------------------------ messages received


class Message:
    def __init__(self, kind, body):
        self.kind, self.body = kind, body

    def fields(self):
        """Of an ErrorResponse or NoticeResponse."""
        parts = self.body.rstrip(b"\0").split(b"\0")
        return {chr(p[0]): p[1:].decode(errors="replace") for p in parts if p}

    def text(self):
        return self.body.split(b"\0")[0].decode()

    def __repr__(self):
        return "%s:%r" % (self.kind, self.body[:60])


def decode_row(body):
    count, at, row = struct.unpack_from("!H", body)[0], 2, []
    for _ in range(count):
        size = struct.unpack_from("!i", body, at)[0]
        at += 4
        if size < 0:
            row.append(None)
        else:
            row.append(body[at : at + size].decode())
            at += size
    return tuple(row)


def decode_columns(body):
    """[(name, type oid)] of a RowDescription."""
    count, at, columns = struct.unpack_from("!H", body)[0], 2, []
    for _ in range(count):
        end = body.index(b"\0", at)
        columns.append((body[at:end].decode(), struct.unpack_from("!I", body, end + 7)[0]))
        at = end + 19
    return columns


class Answer(list):
    """The messages of one answer, usually up to ReadyForQuery."""

    @property
    def kinds(self):
        return "".join(m.kind for m in self)

    @property
    def rows(self):
        return [decode_row(m.body) for m in self if m.kind == "D"]

    @property
    def value(self):
        """Of an answer with one row of one column."""
        rows = self.rows
        assert len(rows) == 1 and len(rows[0]) == 1, self
        return rows[0][0]

    @property
    def columns(self):
        return next((decode_columns(m.body) for m in self if m.kind == "T"), [])

    @property
    def tags(self):
        return [m.text() for m in self if m.kind == "C"]

    @property
    def errors(self):
        return [m.fields() for m in self if m.kind == "E"]

    @property
    def codes(self):
        return [e["C"] for e in self.errors]

    @property
    def notices(self):
        return [m.fields()["M"] for m in self if m.kind == "N"]

    @property
    def copied(self):
        return b"".join(m.body for m in self if m.kind == "d")

    @property
    def parameters(self):
        """Of the ParameterStatus messages."""
        return dict(m.body[:-1].decode().split("\0") for m in self if m.kind == "S")

    @property
    def status(self):
        """I, T or E of the last ReadyForQuery."""
        return next(m.body.decode() for m in reversed(self) if m.kind == "Z")


# ------------------------------------------------------------------ connections


class Conn:
    """One connection. With login=False nothing has been sent yet."""

    def __init__(
        self,
        port,
        user="app",
        database="app",
        password=None,
        params=None,
        host="127.0.0.1",
        login=True,
        timeout=15,
        version=PROTOCOL_3_0,
        receive_buffer=None,
        tls=None,
    ):
        family = socket.AF_UNIX if host.startswith("/") else socket.AF_INET
        self.sock = socket.socket(family, socket.SOCK_STREAM)
        if receive_buffer:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.sock.settimeout(timeout)
        self.sock.connect("%s/.s.PGSQL.%d" % (host, port) if family == socket.AF_UNIX else (host, port))
        if family == socket.AF_INET:
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls:
            self.sock = self.start_tls(tls)
        self.buffer = b""
        self.port, self.host, self.user, self.password = port, host, user, password
        self.parameters, self.key, self.methods = {}, None, []
        self.welcome = Answer()
        if login:
            self.login({"user": user, "database": database, **(params or {})}, version)

    def start_tls(self, context):
        """The socket under TLS, after asking for it as the protocol has it (SSLRequest)."""
        self.sock.sendall(struct.pack("!II", 8, SSL_REQUEST))
        answer = self.sock.recv(1)
        assert answer == b"S", "TLS was not agreed to: %r" % answer
        return context.wrap_socket(self.sock)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.drop()

    def login(self, params, version=PROTOCOL_3_0):
        self.send(startup(params, version))
        self.finish_login()

    def finish_login(self):
        while True:
            m = self.read()
            self.welcome.append(m)
            if m.kind == "E":
                raise PgError(m.fields(), self.welcome)
            if m.kind == "R":
                self.authenticate(m.body)
            elif m.kind == "K":
                self.key = m.body
            elif m.kind == "Z":
                self.parameters = self.welcome.parameters
                return

    def authenticate(self, body):
        method = struct.unpack_from("!I", body)[0]
        if method == 3:
            self.methods.append("plain")
            self.send(message("p", cstr(self.password)))
        elif method == 5:
            self.methods.append("md5")
            inner = hashlib.md5((self.password + self.user).encode()).hexdigest()
            outer = hashlib.md5(inner.encode() + body[4:8]).hexdigest()
            self.send(message("p", cstr("md5" + outer)))
        elif method == 10:
            self.methods.append("scram")
            self.mechanisms = [x.decode() for x in body[4:].split(b"\0") if x]
            self.scram = Scram(self.password)
            first = self.scram.first()
            self.send(message("p", cstr("SCRAM-SHA-256") + struct.pack("!I", len(first)) + first))
        elif method == 11:
            self.send(message("p", self.scram.final(body[4:])))
        elif method == 12:
            self.scram.check(body[4:])

    # sending and receiving

    def send(self, data):
        self.sock.sendall(data)

    def fill(self):
        data = self.sock.recv(65536)
        if not data:
            raise Closed("closed by the other side")
        self.buffer += data

    def read_bytes(self, count):
        while len(self.buffer) < count:
            self.fill()
        data, self.buffer = self.buffer[:count], self.buffer[count:]
        return data

    def read(self, timeout=None):
        if timeout is not None:
            before = self.sock.gettimeout()
            self.sock.settimeout(timeout)
            try:
                return self.read()
            finally:
                self.sock.settimeout(before)
        try:
            head = self.read_bytes(5)
            size = struct.unpack("!I", head[1:])[0]
            return Message(head[:1].decode("latin1"), self.read_bytes(size - 4))
        except ConnectionResetError:
            raise Closed("reset by the other side") from None

    def read_until(self, kind, count=1):
        """All messages up to the count-th one of a kind."""
        answer = Answer()
        while count:
            answer.append(self.read())
            count -= answer[-1].kind == kind
        return answer

    def ready(self, count=1):
        return self.read_until("Z", count)

    def read_to_end(self):
        """All messages until the other side closes."""
        answer = Answer()
        while True:
            try:
                answer.append(self.read())
            except Closed:
                return answer

    def is_silent(self, seconds=0.2):
        """Nothing arrives within the time, and the connection is still open."""
        if self.buffer:
            return False
        try:
            self.buffer += self.read_raw(seconds)
            return False
        except socket.timeout:
            return True

    def read_raw(self, seconds):
        before = self.sock.gettimeout()
        self.sock.settimeout(seconds)
        try:
            return self.sock.recv(65536)
        finally:
            self.sock.settimeout(before)

    # whole exchanges

    def ask(self, data):
        """Sends; the answer up to ReadyForQuery, errors and all."""
        self.send(data)
        return self.ready()

    def query(self, sql):
        """A simple query that must succeed."""
        answer = self.ask(query(sql))
        if answer.errors:
            raise PgError(answer.errors[0], answer)
        return answer

    def value(self, sql):
        return self.query(sql).value

    def table(self, sql):
        """Rows as dictionaries."""
        answer = self.query(sql)
        names = [name for name, _ in answer.columns]
        return [dict(zip(names, row)) for row in answer.rows]

    def fails(self, sql):
        """A simple query that must fail and keep the session; the fields of its error."""
        answer = self.ask(query(sql))
        assert len(answer.errors) == 1, answer
        return answer.errors[0]

    def last_words(self):
        """The fields of the error with which the other side closes the connection."""
        answer = self.read_to_end()
        assert answer.errors, "closed without an error: %r" % answer
        return answer.errors[-1]

    def cancel(self, key=None):
        """Sends a CancelRequest for this connection and waits until it was taken: its socket is then closed."""
        with Conn(self.port, host=self.host, login=False) as c:
            c.send(cancel_request(key or self.key))
            return c.read_to_end()

    def terminate(self):
        self.send(terminate())
        self.sock.close()

    def drop(self):
        """Closes the socket without a word."""
        self.sock.close()

    def reset(self):
        """Closes with a TCP reset."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()


class Scram:
    """The client's part of SCRAM-SHA-256, without channel binding."""

    def __init__(self, password):
        self.password = password.encode()
        self.bare = "n=,r=" + base64.b64encode(os.urandom(18)).decode()

    def first(self):
        return ("n,," + self.bare).encode()

    def final(self, server_first):
        fields = dict(part.split("=", 1) for part in server_first.decode().split(","))
        salted = hashlib.pbkdf2_hmac("sha256", self.password, base64.b64decode(fields["s"]), int(fields["i"]))
        client_key = hmac.digest(salted, b"Client Key", "sha256")
        without_proof = "c=biws,r=" + fields["r"]
        signed = ",".join([self.bare, server_first.decode(), without_proof]).encode()
        signature = hmac.digest(hashlib.sha256(client_key).digest(), signed, "sha256")
        proof = bytes(a ^ b for a, b in zip(client_key, signature))
        self.server_signature = hmac.digest(hmac.digest(salted, b"Server Key", "sha256"), signed, "sha256")
        return (without_proof + ",p=" + base64.b64encode(proof).decode()).encode()

    def check(self, server_final):
        assert server_final == b"v=" + base64.b64encode(self.server_signature), server_final


def scram_secret(password, iterations=4096, salt=b"sixteen byte salt"):
    """As in pg_authid."""
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, iterations)
    stored = hashlib.sha256(hmac.digest(salted, b"Client Key", "sha256")).digest()
    server = hmac.digest(salted, b"Server Key", "sha256")
    encode = lambda b: base64.b64encode(b).decode()
    return "SCRAM-SHA-256$%d:%s$%s:%s" % (iterations, encode(salt), encode(stored), encode(server))


def md5_secret(user, password):
    return "md5" + hashlib.md5((password + user).encode()).hexdigest()
