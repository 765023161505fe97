"""A cloud database of its own for one test: with schema lokadb, the command line and pg_dump at hand."""

import json
import subprocess

import harness
import wire

ORGANIZATIONS = """
create table organizations (id bigint primary key, name text);
insert into organizations select g, 'org ' || g from generate_series(1, 4) g;
"""
DOCUMENTS = (
    ORGANIZATIONS
    + """
create table documents (id bigserial primary key, organization_id bigint not null references organizations, title text);
insert into documents (organization_id, title) select 1 + g % 4, 'doc ' || g from generate_series(1, 40) g;
grant select, insert, update, delete on documents to app; grant usage on sequence documents_id_seq to app;
"""
)
MESSAGES = """
create table messages (id bigserial primary key, document_id bigint not null references documents on delete cascade, body text);
insert into messages (document_id, body) select 1 + g % 40, 'm' || g from generate_series(1, 80) g;
grant select, insert, update, delete on messages to app; grant usage on sequence messages_id_seq to app;
"""


class Cloud:
    def __init__(self, cluster, name):
        self.cluster, self.name, self.open = cluster, name, []

    def dsn(self, user="postgres"):
        return "host=127.0.0.1 port=%d dbname=%s user=%s" % (self.cluster.port, self.name, user)

    def sql(self, sql):
        return self.cluster.sql(sql, self.name)

    def value(self, sql):
        return self.sql(sql).value

    def rows(self, sql):
        return [tuple(row) for row in self.sql(sql).rows]

    def connect(self, user="app", **kw):
        c = wire.Conn(self.cluster.port, user=user, database=self.name, **kw)
        self.open.append(c)
        return c

    def schema(self):
        """What pg_dump -s says of all but schema lokadb."""
        done = subprocess.run(
            [harness.PG_BIN / "pg_dump", "-s", "-N", "lokadb", "-d", self.dsn()],
            capture_output=True,
            text=True,
            timeout=60,
            cwd="/",
            **harness.as_service_user()
        )
        assert done.returncode == 0, done.stderr
        return "\n".join(line for line in done.stdout.splitlines() if not line.startswith("\\"))

    def run(self, subcommand, *arguments, user="postgres", **kw):
        return harness.lokadb(subcommand, "-db", self.dsn(user), *arguments, **kw)

    def add(self, table, *arguments, user="postgres"):
        """add-table that must succeed; what it says of the table."""
        done = self.run("add-table", "-table", table, "-json", *arguments, user=user)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def remove(self, *tables, arguments=()):
        for table in tables:
            done = self.run("remove-table", "-table", table, *arguments)
            assert done.returncode == 0, done.stderr

    def refuses(self, *words, user="postgres"):
        """The command must be refused with one sentence, which is returned, and leave everything as it was."""
        before = self.schema()
        done = self.run(*words, user=user)
        assert done.returncode == 1, (done.returncode, done.stdout, done.stderr)
        assert done.stdout == "" and done.stderr.startswith("lokadb: ") and done.stderr.count("\n") == 1, done
        assert "[SELECT" not in done.stderr, "not a sentence of ours: " + done.stderr
        assert self.schema() == before
        assert self.value("select count(*) from lokadb.tables where to_regclass(tbl::text) is null") == "0"
        return done.stderr[len("lokadb: ") : -1]

    def close(self):
        for c in self.open:
            c.drop()
        if self.name in self.cluster.admin:
            self.cluster.admin.pop(self.name).drop()
        self.cluster.sql('drop database if exists "%s" with (force)' % self.name, "postgres")


# ------------------------------------------------------------------ an application to try the gate with

APPLICATION = (
    ORGANIZATIONS
    + """
create table documents (id bigint primary key, organization_id bigint not null references organizations, title text, secret text);
create table messages (id bigint primary key, document_id bigint not null references documents on delete cascade, body text);
create table notes (id uuid primary key default gen_random_uuid(), organization_id bigint not null, doc bigint);
create table audit (document_id bigint references documents on delete restrict);
insert into documents select g, 1 + g % 2, 'doc ' || g from generate_series(1, 4) g; -- 1 3: org 2, 2 4: org 1
insert into messages select g, g, 'm' from generate_series(1, 4) g;
grant select, insert, update, delete on documents, messages, notes to app;
grant select (id, title) on documents to other;
"""
)


def fingerprint(cloud, table="public.documents"):
    return cloud.value("select lokadb.fingerprint('%s')" % table)


def enter(org="1", generation=0, tables=None, write=True, keys=None, rights=None):
    return "select profile, generation from lokadb.enter('%s', %d, '%s', %s, '%s', '%s')" % (
        org,
        generation,
        json.dumps(tables or {}),
        write,
        json.dumps(keys or {}),
        json.dumps(rights or {}),
    )
