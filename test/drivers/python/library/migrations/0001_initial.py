import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True
    dependencies = []
    operations = [
        migrations.CreateModel(
            "Shelf",
            [
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=50, unique=True)),
            ],
        ),
        migrations.CreateModel(
            "Book",
            [
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("title", models.TextField()),
                ("price", models.DecimalField(max_digits=10, decimal_places=2, default=0)),
                ("data", models.JSONField(default=dict)),
                ("tags", django.contrib.postgres.fields.ArrayField(models.TextField(), default=list)),
                ("printed", models.DateTimeField(null=True)),
                ("cover", models.BinaryField(null=True)),
                ("lent", models.DurationField(null=True)),
                ("shelf", models.ForeignKey("library.Shelf", django.db.models.deletion.CASCADE, related_name="books")),
            ],
        ),
    ]
