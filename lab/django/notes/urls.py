"""Where what is."""

from django.contrib import admin
from django.urls import include, path

from . import views

urlpatterns = [
    path("", views.Notes.as_view()),
    path("notes/<int:pk>/", views.OneNote.as_view()),
    path("notes/new/", views.NewNote.as_view()),
    path("contact/", views.Contact.as_view()),
    path("me/", views.me),
    path("live/", views.live),
    path("chat/", views.chat),
    path("events/", views.events),
    path("accounts/", include("django.contrib.auth.urls")),
    path("admin/", admin.site.urls),
]
