from django.contrib.postgres.fields import ArrayField
from django.db import models


class Shelf(models.Model):
    name = models.CharField(max_length=50, unique=True)


class Book(models.Model):
    shelf = models.ForeignKey(Shelf, on_delete=models.CASCADE, related_name="books")
    title = models.TextField()
    price = models.DecimalField(max_digits=10, decimal_places=2, default=0)
    data = models.JSONField(default=dict)
    tags = ArrayField(models.TextField(), default=list)
    printed = models.DateTimeField(null=True)
    cover = models.BinaryField(null=True)
    lent = models.DurationField(null=True)
    pages = models.IntegerField(default=1)
