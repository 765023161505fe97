"""Thousands of statements that nobody wrote: what goes direct returns exactly what the cloud returns.

Reads are changed at random (words taken out, put in, exchanged, values of other organizations), and run over random rows of
several organizations through the proxy and past it. LOKADB_SEED names another course.
"""

import os
import random
import re
import time

import pytest

import routed_world
from lokadb_world import APPLICATION
from routed_world import counts
from test_router import READS
from wire import extended, query

SEED = int(os.environ.get("LOKADB_SEED", "7"))
STATEMENTS, SECONDS = 3000, 30
ROWS = """
select setseed(0.25);
delete from messages; delete from conversations; delete from documents;
insert into documents (organization_id, title)
  select 1 + (random() * 4)::int, case when random() < 0.8 then 'd' || (random() * 12)::int end from generate_series(1, 120);
insert into conversations (organization_id) select 1 + (random() * 4)::int from generate_series(1, 25);
insert into messages (conversation_id) select id from conversations, generate_series(1, 4) where random() < 0.5;
"""


@pytest.fixture(scope="module")
def world(cluster_of_session):
    made = routed_world.make(cluster_of_session, ("2", "3", "4"), APPLICATION % 1 + ROWS)
    yield made
    made.drop()


WORD = re.compile(r"'[^']*'|\{\w\}|\w+|[<>=!|]+|[^\s\w]")
# What may stand for what. Words of one line are tried in each other's place.
ALIKE = [
    "= <> < > <= >= is like".split(),
    "and or".split(),
    "id organization_id title conversation_id name".split(),
    "documents conversations messages organizations".split(),
    "count min max sum avg array_agg".split(),
    "asc desc".split(),
    "union except intersect".split(),
    "inner left right full cross".split(),
    "exists not".split(),
    "upper lower length coalesce abs md5 now random".split(),
    "in any all".split(),
    "0 1 2 3 7 40".split(),
    "d e m v x s".split(),
]
INSERTED = "not distinct null true false and or is ( ) , - * 1 2 'x' id title documents where group by order limit with as only".split()
CONDITIONS = (
    "organization_id = {o}", "organization_id = {p}", "id = {k}", "id in ({k}, {l})", "id = {m}", "id is null", "title is null",
    "organization_id is not null", "organization_id in ({o}, {p})", "id = any(array[{k}, {l}])", "not organization_id = {o}",
    "organization_id = {o} or id = {k}", "exists (select 1 from documents z where z.id = {k})", "true", "null",
    "id = (select max(id) from documents where organization_id = {o})", "(organization_id, id) = ({o}, {k})",
    "organization_id between {o} and {p}", "coalesce(organization_id, {o}) = {o}", "organization_id + 0 = {o}",
    "organization_id = {o}::bigint", "organization_id = '{o}'", "id = {k} and organization_id = {p}", "id::text = '{k}'",
)
WRAPPINGS = (
    "select * from ({}) q", "with q as ({}) select * from q", "select count(*) from ({}) q", "({}) union all ({})",
    "select q.* from ({}) q, documents d where d.id = {k}", "select exists ({})", "({}) except ({})", "{} for update",
    "select * from documents where organization_id = {o} and id in (select id from ({}) q)", "explain {}", "{};",
    "select * from ({}) q join documents d on d.organization_id = {o}", "select * from ({}) a left join ({}) b on true",
)


class Mutator:
    def __init__(self, keys, conversations):
        self.random, self.keys, self.conversations = random.Random(SEED), keys, conversations

    def values(self):
        org = self.random.choice("2223334441")  # 1 and 5 are at home
        other = self.random.choice([o for o in sorted(self.keys) if o != org])
        return dict(
            o=org, p=other, k=self.random.choice(self.keys[org]), l=self.random.choice(self.keys[org]),
            m=self.random.choice(self.keys[other]), c=self.random.choice(self.conversations[org]),
        )

    def statement(self):
        values = self.values()
        text = self.random.choice(READS)
        for _ in range(self.random.choice((0, 1, 1, 1, 1, 2, 3))):
            text = self.random.choice((self.exchange, self.exchange, self.condition, self.condition, self.condition,
                                       self.remove, self.insert, self.wrap, self.wrap, self.another, self.another))(text)
        return re.sub(r"\{(\w)\}", lambda m: str(values[m.group(1)]), text)

    def exchange(self, text):
        words = list(WORD.finditer(text))
        fitting = [(w, group) for w in words for group in ALIKE if w.group() in group]
        if not fitting:
            return text
        word, group = self.random.choice(fitting)
        return text[: word.start()] + self.random.choice(group) + text[word.end() :]

    def condition(self, text):
        places = [m.end() for m in re.finditer(r"\b(where|and|or|on)\b", text)]
        added = self.random.choice(CONDITIONS)
        if places and self.random.random() < 0.8:
            at = self.random.choice(places)
            return text[:at] + " " + added + self.random.choice((" and ", " or ", " and not ")) + text[at:]
        return re.sub(r"(?= order by|$)", " where " + added, text, count=1)

    def remove(self, text):
        word = self.random.choice(list(WORD.finditer(text)))
        return text[: word.start()] + text[word.end() :]

    def insert(self, text):
        at = self.random.choice(list(WORD.finditer(text))).start()
        return text[:at] + self.random.choice(INSERTED) + " " + text[at:]

    def wrap(self, text):
        return self.random.choice(WRAPPINGS).replace("{}", text)

    def another(self, text):
        """The value of another organization in the place of one."""
        places = list(re.finditer(r"\{[okl]\}", text))
        if not places:
            return text
        place = self.random.choice(places)
        return text[: place.start()] + self.random.choice(("{p}", "{m}", "{k}", "{o}", "null", "-{k}", "'{k}'", "{k}.0")) + text[place.end() :]


# Rows may then be others, or come in another order, each time the same statement runs.
NOT_REPEATABLE = re.compile(r"\b(limit|offset|over|now|random|array_agg|explain|fetch|tableoid)\b")
# Which of two errors is found first is the plan's affair.
ERRORS_OF_ROWS = {"22012", "22P02", "22003", "21000"}


def outcome(answer, sql):
    if NOT_REPEATABLE.search(sql):
        return answer.codes, len(answer.rows) if not re.search("explain|random|now", sql) else None
    return answer.codes, sorted(answer.rows, key=repr), answer.columns


def agrees(got, expected, sql):
    if outcome(got, sql) == outcome(expected, sql):
        return True
    return bool(set(got.codes) & ERRORS_OF_ROWS) or bool(set(expected.codes) & ERRORS_OF_ROWS)


def in_some_form(rng, sql):
    """As a simple query, unnamed, or with its numbers as parameters."""
    form = rng.random()
    if form < 0.5:
        return query(sql)
    if form < 0.75 or ";" in sql:
        return extended(sql)
    values = []

    def parameter(match):
        values.append(match.group(1))
        return "= $%d" % len(values)

    return extended(re.sub(r"= (\d+)\b(?![.:])", parameter, sql), values)


def test_mutations_that_go_direct_return_what_the_cloud_returns(start, world):
    p = routed_world.is_ready(start(**routed_world.settings(world)))
    client, plain = p.connect(timeout=30), world.app()
    plain.query("set statement_timeout = '5s'")
    keys, conversations = {}, {}
    for org in ("1", "2", "3", "4", "5"):
        database = world.org_database.get(org, world.cloud)
        sql = "select %s from %s where organization_id = " + org + " order by 1"
        keys[org] = [k for k, in world.cluster.sql(sql % ("id", "documents"), database).rows]
        conversations[org] = [k for k, in world.cluster.sql(sql % ("id::text", "conversations"), database).rows]
    mutator, compared = Mutator(keys, conversations), 0
    until = time.monotonic() + SECONDS
    while compared < STATEMENTS and time.monotonic() < until:
        sql = mutator.statement()
        batch = in_some_form(mutator.random, sql)
        got, expected = client.ask(batch), plain.ask(batch)
        assert agrees(got, expected, sql), (SEED, sql, batch, got.rows[:5], got.codes, expected.rows[:5], expected.codes)
        compared += 1
    plain.drop()
    reasons = counts(p)
    direct = reasons.get("tenant-known", 0) + reasons.get("key-found", 0)
    print("compared %d, direct %d, %s" % (compared, direct, reasons))
    assert compared >= 100 and direct > compared / 10, reasons
