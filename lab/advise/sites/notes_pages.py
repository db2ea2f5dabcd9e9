"""Sections of the lab's Django application, whose pages have the fields of a site that grew: their views and addresses."""

from django.conf import settings
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import include, path

from notes.models import Note
from sites.site import text

# The fields of each section's pages: as they are, and as they should be.
SECTIONS = {
    "topics": ({"Cache-Control": "max-age=600"}, {"Cache-Control": "max-age=600"}),
    "help": (
        {"Cache-Control": "max-age=600", "Set-Cookie": "seen=1; Path=/help/"}, {"Cache-Control": "max-age=600"},
    ),
    "archive": ({}, {"Cache-Control": "max-age=600"}),
    "tags": ({"Cache-Control": "private, max-age=600"}, {"Cache-Control": "max-age=600"}),
    "print": ({"Cache-Control": "max-age=600"}, {"Cache-Control": "max-age=600"}),
    "guides": ({"Cache-Control": "max-age=600", "Vary": "Accept-Language"}, {"Cache-Control": "max-age=600"}),
    "recent": ({"Cache-Control": "max-age=1, must-revalidate"}, {"Cache-Control": "max-age=600"}),
}


def answer(text, fields):
    """A page with a note's text."""
    response = HttpResponse(f"<!doctype html><title>Notes</title><main>{text}</main>")
    for name, value in fields.items():
        response[name] = value
    return response


def section(request, name, pk):
    if name not in SECTIONS:
        raise Http404
    note = get_object_or_404(Note, pk=pk)
    return answer(f"{note.title}: {text(f'{name} {note.text}', 4000)}", SECTIONS[name][settings.LAB_WELL])


def old(request, pk):
    """Addresses from before. Django's own redirects have no lifetime."""
    response = HttpResponse(status=301, headers={"Location": f"/topics/{pk}/"})
    if settings.LAB_WELL:
        response["Cache-Control"] = "max-age=600"
    return response


def desk(request):
    """What a session has."""
    key = request.COOKIES.get("sessionid", "")
    request.session.get("visits")
    return answer(f"shown cookie sessionid is [{key}]", {})


def prices(request):
    """A page in a currency, which one visitor has changed."""
    currency = request.COOKIES.get("currency", "EUR")
    return answer(f"shown cookie currency is [{currency}]", {"Cache-Control": "max-age=600"})


def listing(request):
    """A page of a list."""
    page = request.GET.get("page", "")
    return answer(f"shown parameter page is [{page}]", {"Cache-Control": "max-age=600"})


def gone(request, exception):
    response = answer("There is no such page.", {"Cache-Control": "max-age=600"} if settings.LAB_WELL else {})
    response.status_code = 404
    return response


def form(request):
    """A form whose token is a cookie, too."""
    return render(request, "notes/form.html", {"form": ""})


handler404 = "sites.notes_pages.gone"
urlpatterns = [
    path("old/<int:pk>/", old), path("desk/", desk), path("prices/", prices), path("list/", listing),
    path("ask/", form), path("<slug:name>/<int:pk>/", section), path("", include("notes.urls")),
]
