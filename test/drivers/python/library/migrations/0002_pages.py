from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


def fill(apps, _):
    shelf = apps.get_model("library", "Shelf").objects.create(name="made by a migration")
    apps.get_model("library", "Book").objects.create(shelf=shelf, title="made by a migration", pages=7)


def clear(apps, _):
    apps.get_model("library", "Shelf").objects.all().delete()


class Migration(migrations.Migration):
    dependencies = [("library", "0001_initial")]
    atomic = False  # for the index
    operations = [
        migrations.AddField("Book", "pages", models.IntegerField(default=1)),
        migrations.RunPython(fill, clear),
        AddIndexConcurrently("Book", models.Index(fields=["pages"], name="library_pages")),
    ]
