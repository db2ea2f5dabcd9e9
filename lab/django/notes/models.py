"""What there is: notes, and what visitors have said."""

from django.conf import settings
from django.db import models


class Note(models.Model):
    title = models.CharField(max_length=100)
    text = models.TextField()
    author = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL)

    def __str__(self):
        return self.title

    def get_absolute_url(self):
        return f"/notes/{self.pk}/"


class Message(models.Model):
    name = models.CharField(max_length=100)
    text = models.TextField()
