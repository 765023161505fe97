"""What the tests of the command line run on: an application's database and those of organizations."""

import itertools
import json
import os
import pathlib
import shutil

import conftest
import harness
import lokadb_app
import wire
from harness import ROOT

# The one built with the proxy under test.
LOKADB = pathlib.Path(os.environ.get("LOKADB_PROXY", ROOT / "build" / "lokadb-proxy")).parent / "lokadb"
LOKADB = pathlib.Path(os.environ.get("LOKADB", LOKADB))
PASSWORDS = {"customers_fdw": "fdw-pw", "customers_app": "app-pw"}
numbers = itertools.count(1)

APPLICATION = """
create table organizations (id bigint primary key, name text not null);
create table documents (id bigserial primary key, organization_id bigint not null references organizations, title text);
create table conversations (id uuid primary key default gen_random_uuid(), organization_id bigint not null references organizations);
create table messages (id bigserial primary key, conversation_id uuid not null references conversations on delete cascade);
create table audit (id bigserial primary key, document_id bigint references documents);
insert into organizations select g, 'o' || g from generate_series(1, 5) g;
insert into documents (organization_id, title) select 1 + g %% 5, 'd' || g from generate_series(1, %d) g;
insert into conversations (organization_id) select 1 + g %% 5 from generate_series(1, 20) g;
insert into messages (conversation_id) select id from conversations, generate_series(1, 3);
grant select, insert, update, delete on documents, conversations, messages, organizations to app;
grant usage on all sequences in schema public to app;
"""

# audit stays a plain table of the cloud.
TABLES = [["-table", name] for name in ("documents", "conversations", "messages")]


class World:
    """A cloud database with tables under LokaDB, a control plane, and organizations' databases; all in one cluster."""

    def __init__(self, cluster):
        self.cluster, self.number = cluster, next(numbers)
        self.folder, self.key = conftest.new_folder(), None
        harness.give_to_service_user(self.folder)
        self.cloud, self.control = self.new_database("cloud"), self.new_database("control")
        self.org_database = {}

    def new_database(self, name):
        name = "refs%d_%s" % (self.number, name)
        self.databases = getattr(self, "databases", []) + [name]
        self.cluster.sql('create database "%s"' % name, "postgres")
        return name

    def drop(self):
        for name in self.databases:
            if name in self.cluster.admin:
                self.cluster.admin.pop(name).drop()
            self.cluster.sql('drop database "%s" with (force)' % name, "postgres")
        shutil.rmtree(self.folder)

    def dsn(self, database, port=None):
        return "host=127.0.0.1 port=%d dbname=%s user=postgres" % (port or self.cluster.port, database)

    def start(self, *words):
        return lokadb_app.launch(*words)

    def run(self, *words, **kw):
        return lokadb_app.lokadb(*words, **kw)

    def refs(self, what, *words, status=0):
        return self.run("refs-" + what, "-db", self.dsn(self.cloud), *words, status=status)

    def json(self, what, *words, status=0):
        return json.loads(self.refs(what, "-json", *words, status=status).splitlines()[0])

    def control_flags(self):
        return ["-control-plane", self.dsn(self.control), "-key", str(self.key)]

    def set_up(self, application, *tables):
        self.sql(application)
        self.run("init", "-db", self.dsn(self.cloud), "-control-plane", self.dsn(self.control))
        for words in tables:
            self.run("add-table", "-db", self.dsn(self.cloud), *words)
        self.key = self.folder / "key"
        self.run("keygen", "-key", str(self.key))

    def move(self, org, port=None):
        """port: of a relay through which the organization's database is to be reached."""
        name = self.org_database[org] = self.new_database("org%d" % len(self.org_database))
        for kind, role in (("fdw", "customers_fdw"), ("direct", "customers_app")):
            secret = self.folder / kind
            secret.write_text(PASSWORDS[role] + "\n")
            self.run(
                "org-credentials",
                *self.control_flags(),
                "-org",
                org,
                "-kind",
                kind,
                "-user",
                role,
                "-password-file",
                str(secret)
            )
        self.run(
            "move-org",
            "-db",
            self.dsn(self.cloud),
            "-org",
            org,
            "-to",
            self.dsn(name, port),
            "-profile",
            "fdw+direct",
            *self.control_flags()
        )

    def sql(self, sql):
        return self.cluster.sql(sql, self.cloud)

    def org_sql(self, org, sql):
        return self.cluster.sql(sql, self.org_database[org])

    def app(self):
        return wire.Conn(self.cluster.port, user="app", database=self.cloud)

    def direct(self, org):
        return wire.Conn(self.cluster.port, user="customers_app", password="app-pw", database=self.org_database[org])

    def entries(self, table="documents"):
        return {(k, o) for k, o in self.sql("select id, organization_id from %s__refs" % table).rows}

    def rows(self, table="documents"):
        """As the organizations' databases and the local part say, past postgres_fdw."""
        found = self.sql("select id, organization_id from %s__local" % table).rows
        for org in self.org_database:
            found += self.org_sql(org, "select id, organization_id from %s" % table).rows
        return {(k, o) for k, o in found}

    def agrees(self):
        return all(self.entries(t) == self.rows(t) for t in ("documents", "conversations", "messages"))
