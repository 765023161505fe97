"""Models of a small shop with organizations."""

from django.db import models


class Organization(models.Model):
    name = models.TextField()

    class Meta:
        db_table = "organizations"


class Document(models.Model):
    organization = models.ForeignKey(Organization, models.PROTECT)
    title = models.TextField()
    price = models.DecimalField(max_digits=9, decimal_places=2, default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["organization", "title"], name="one_title")]


class Comment(models.Model):
    document = models.ForeignKey(Document, models.CASCADE, related_name="comments")
    organization = models.ForeignKey(Organization, models.PROTECT)
    text = models.TextField()
