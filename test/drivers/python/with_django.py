"""Django: migrations, models and their queries, transactions and savepoints, server-side cursors, threads, its shell
tools' introspection."""

import datetime
import decimal
import io
import sys
import threading

import django
from django.conf import settings

from tell import DATABASE, WHERE, attempt, show

settings.configure(
    INSTALLED_APPS=["library"],
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": DATABASE,
            "HOST": WHERE["host"],
            "PORT": WHERE["port"],
            "USER": WHERE["user"],
            "PASSWORD": WHERE["password"],
            "CONN_MAX_AGE": 600,
        }
    },
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    USE_TZ=True,
    TIME_ZONE="Europe/Paris",
)
django.setup()

from django.core.management import call_command  # noqa: E402
from django.db import connection, models, transaction  # noqa: E402
from library.models import Book, Shelf  # noqa: E402


def command(*words, **options):
    out = io.StringIO()
    call_command(*words, stdout=out, no_color=True, **options)
    return out.getvalue().splitlines()


def migrations():
    show("migrated", command("migrate"))
    show("again", command("migrate"))
    show("list", command("showmigrations"))
    show("pages", list(Book.objects.values_list("title", "pages")))
    show("back", command("migrate", "library", "0001"))
    show("forth", command("migrate", "library"))
    show("differs", [line.strip() for line in command("makemigrations", dry_run=True) if line.startswith("    ")])


def queries():
    shelf = Shelf.objects.create(name="first")
    printed = datetime.datetime(2024, 2, 29, 12, 30, tzinfo=datetime.timezone.utc)
    common = dict(
        data={"k": [1, None]}, tags=["a", "b,c"], printed=printed, cover=b"\x00\xff", lent=datetime.timedelta(days=1)
    )
    made = Book.objects.bulk_create(
        [Book(shelf=shelf, title="b%d" % n, price=decimal.Decimal("%d.50" % n), **common) for n in range(20)]
    )
    show("keys come back", all(b.pk for b in made))
    for n in range(6):
        b = Book.objects.select_related("shelf").get(title="b%d" % n)
        show(b.title, (b.shelf.name, b.price, b.data, b.tags, b.printed, bytes(b.cover), b.lent))
    show("by json", Book.objects.filter(data__k__0=1, tags__contains=["a"]).count())
    show("by date", Book.objects.filter(printed__date=datetime.date(2024, 2, 29), printed__hour=13).count())  # in Paris
    show(
        "aggregate",
        Book.objects.filter(shelf=shelf).aggregate(models.Sum("price"), models.Avg("pages"), models.Count("id")),
    )
    show("annotated", list(Shelf.objects.annotate(n=models.Count("books")).order_by("name").values_list("name", "n")))
    show("prefetched", [len(s.books.all()) for s in Shelf.objects.prefetch_related("books").order_by("name")])
    show("updated", Book.objects.filter(price__gt=10).update(price=models.F("price") + 1, pages=3))
    show("get or create", [Shelf.objects.get_or_create(name="second")[1] for _ in range(2)])
    show(
        "bulk update",
        Book.objects.bulk_update([b for b in made if setattr(b, "pages", 9) is None], ["pages"], batch_size=6) or True,
    )
    show("dates", list(Book.objects.filter(shelf=shelf).dates("printed", "month")))
    with transaction.atomic():
        show("server-side cursor", sum(1 for _ in Book.objects.order_by("id").iterator(chunk_size=5)))
    if "session" in sys.argv:  # WITH HOLD
        show("cursor that is held", sum(1 for _ in Book.objects.order_by("id").iterator(chunk_size=5)))
    show("ignored", len(Shelf.objects.bulk_create([Shelf(name="second"), Shelf(name="third")], ignore_conflicts=True)))
    show("explained", "Seq Scan" in Shelf.objects.all().explain())
    show("raw", [s.name for s in Shelf.objects.raw("select * from library_shelf where name = %s", ["second"])])
    show("deleted", Shelf.objects.filter(name="third").delete())


def transactions():
    try:
        with transaction.atomic():
            Shelf.objects.create(name="gone")
            attempt("inner", inner)
            transaction.on_commit(lambda: show("never", "called"))
            raise KeyError
    except KeyError:
        show("rolled back", Shelf.objects.filter(name="gone").count())
    with transaction.atomic():
        transaction.on_commit(lambda: show("on commit", "called"))
        show("locked", Shelf.objects.select_for_update(nowait=True).get(name="second").name)
    attempt("duplicate", lambda: Shelf.objects.create(name="second"))
    attempt("usable", Shelf.objects.count)
    with connection.cursor() as cursor:
        attempt("missing", lambda: cursor.execute("select * from missing_table"))
        cursor.execute("show timezone")
        show("zone", cursor.fetchall())
        cursor.executemany("insert into library_shelf (name) values (%s)", [["many %d" % n] for n in range(20)])
        show("description", [d.name for d in connection.introspection.get_table_description(cursor, "library_book")])
        show("constraints", sorted(k for k in connection.introspection.get_constraints(cursor, "library_shelf")))


def inner():
    with transaction.atomic():
        Shelf.objects.create(name="gone")


def in_threads():
    saw = {}

    def work(number):
        for turn in range(5):
            with transaction.atomic():
                shelf = Shelf.objects.create(name="thread %d.%d" % (number, turn))
                saw[number, turn] = Shelf.objects.get(pk=shelf.pk).name
        connection.close()

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    show("threads", sorted(saw.items()))


migrations()
queries()
transactions()
in_threads()
show("inspected", command("inspectdb", "library_book"))
show("flushed", command("flush", interactive=False))
show("empty", [Shelf.objects.count(), Book.objects.count()])
show("undone", command("migrate", "library", "zero"))
with connection.cursor() as cursor:
    cursor.execute("drop table django_migrations")
connection.close()
show("end", "reached")
