"""Django's own work on a schema, in steps: python3 django_app.py PORT DATABASE STEP. Prints one line for each thing done."""

import io
import sys

import django
from django.conf import settings

settings.configure(
    INSTALLED_APPS=["shop"],
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            "HOST": "127.0.0.1",
            "PORT": sys.argv[1],
            "NAME": sys.argv[2],
            "USER": "shopper" if sys.argv[3] == "work" else "postgres",
            "OPTIONS": {"options": "-c lokadb.tenant=1"} if sys.argv[3] != "create" else {},
        }
    },
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    USE_TZ=True,
)
django.setup()

from django.core.management import call_command  # noqa: E402
from django.db import DatabaseError, connection, models, transaction  # noqa: E402
from shop.models import Comment, Document, Organization  # noqa: E402


def step_create():
    with connection.schema_editor() as editor:
        for model in (Organization, Document, Comment):
            editor.create_model(model)
    for n in (1, 2):
        o = Organization.objects.create(name="org %d" % n)
        for k in range(3):
            d = Document.objects.create(organization=o, title="d%d" % k, price=k)
            Comment.objects.create(document=d, organization=o, text="c")


def show(what, result):
    print("%s: %s" % (what, result))


def failing(what, work):
    """The SQLSTATE of the error, if it is one."""
    try:
        with transaction.atomic():
            show(what, work())
    except DatabaseError as e:
        show(what, e.__cause__.pgcode)


def step_work():
    o = Organization.objects.get(pk=1)
    show("all", list(Document.objects.order_by("id").values_list("title", flat=True)))
    d = Document.objects.create(organization=o, title="new", price="1.50")
    show("key comes back", d.pk > 6)
    d.title = "renamed"
    d.save()
    show("get", Document.objects.get(pk=d.pk).title)
    show("many", [x.pk is not None for x in Document.objects.bulk_create([Document(organization=o, title=t) for t in "xy"])])
    Document.objects.bulk_create([Document(organization=o, title="x")], ignore_conflicts=True)
    show("created", Document.objects.update_or_create(organization=o, title="x", defaults={"price": 9})[1])
    show("updated", Document.objects.filter(title__in="xy").update(price=models.F("price") + 1))
    show("join", Comment.objects.filter(document__title="d0").select_related("document").get().document.price)
    show("sum", Document.objects.aggregate(n=models.Count("id"), s=models.Sum("price")))
    show("subquery", Document.objects.filter(models.Exists(Comment.objects.filter(document=models.OuterRef("pk")))).count())
    show("prefetch", sum(len(x.comments.all()) for x in Document.objects.prefetch_related("comments")))
    with transaction.atomic():
        show("locked", Document.objects.select_for_update().get(title="y").title)
    failing("other organization", lambda: Document.objects.filter(organization_id=2).count())
    failing("unique", lambda: Document.objects.create(organization=o, title="x"))
    Comment.objects.create(document=d, organization=o, text="gone with it")
    show("cascade", sorted(d.delete()[1].items()))
    annotated = Document.objects.annotate(n=models.Count("comments")).order_by("id")
    failing("group by key on the root", lambda: [x.n for x in annotated])
    sql, parameters = annotated.query.sql_with_params()
    for table in ("shop_document", "shop_comment"):
        sql = sql.replace(' "%s" ON' % table, ' "%s__local" AS "%s" ON' % (table, table))
        sql = sql.replace('FROM "%s"' % table, 'FROM "%s__local" AS "%s"' % (table, table))
    failing("group by key on the local part", lambda: len(list(Document.objects.raw(sql, parameters))))


def step_inspect():
    """The models that inspectdb would write."""
    out = io.StringIO()
    call_command("inspectdb", "shop_document", stdout=out)
    for line in out.getvalue().splitlines():
        if " = models." in line:
            name, definition = line.strip().split(" = ", 1)
            show(name, definition)


def step_migrate():
    extra = models.IntegerField(null=True)
    extra.set_attributes_from_name("extra")
    with connection.schema_editor() as editor:
        editor.add_field(Document, extra)
        editor.add_index(Document, models.Index(fields=["title"], name="by_title"))
    with connection.cursor() as c:
        c.execute("insert into shop_document (organization_id, title, price, extra) values (1, 'wide', 0, 5) returning extra")
        show("added column", c.fetchone()[0])
        names = connection.introspection.table_names(c)
        show("tables", sorted(n for n in names if n.startswith("shop")))
        show("primary key in the catalog", connection.introspection.get_primary_key_column(c, "shop_document"))


globals()["step_" + sys.argv[3]]()
