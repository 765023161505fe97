"""SPEC P5: move-org says how often a statement of profile fdw waits for the organization's database. Counted here."""

import json
import random
import select
import socket
import threading

import pytest
from lokadb_app import App


class Relay(threading.Thread):
    """Between the cloud and an organization's database. turns: how often the cloud spoke after it had been answered."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.target, self.turns, self.peers, self.from_cloud = port, 0, {}, set()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.start()

    def run(self):
        answered = {}
        while True:
            for ready in select.select([self.listener, *self.peers], [], [])[0]:
                if ready is self.listener:
                    near, far = self.listener.accept()[0], socket.create_connection(("127.0.0.1", self.target))
                    self.peers[near], self.peers[far] = far, near
                    self.from_cloud.add(near)
                    answered[near] = True
                    continue
                if ready not in self.peers:
                    continue
                data = ready.recv(65536)
                if not data:
                    for s in (ready, self.peers.pop(ready)):
                        self.peers.pop(s, None)
                        s.close()
                    continue
                if ready in self.from_cloud:
                    self.turns += answered[ready]
                    answered[ready] = False
                else:
                    answered[self.peers[ready]] = True
                self.peers[ready].sendall(data)


@pytest.fixture
def app(cluster):
    a = App(cluster, "cost%d" % random.randrange(10**9), rows=40)
    yield a
    a.drop()


STATEMENTS = {
    "read": ["select title from documents where organization_id = 1 and id = 4"],
    "insert": ["insert into documents (organization_id, title) values (1, 'x') returning id"],
    "update": ["update documents set title = 'y' where organization_id = 1 and id = 4"],
    "two_reads": ["begin", *["select title from documents where organization_id = 1 and id = %d" % n for n in (4, 8)], "commit"],
}


def test_the_round_trips_are_those_that_are_said(app):
    app.add_database(1)
    relay = Relay(app.cluster.port)
    to = app.conninfo(app.databases[0]).replace("port=%d" % app.cluster.port, "port=%d" % relay.port)
    said = json.loads(app.move(1, "-json", to=to))["far_round_trips"]["fdw"]
    counted = {}
    with app.connect(tenant=1) as c:
        c.query("select count(*) from documents")  # logs in there
        for what, statements in STATEMENTS.items():
            before = relay.turns
            for sql in statements:
                c.query(sql)
            counted[what] = relay.turns - before
    assert counted == said
