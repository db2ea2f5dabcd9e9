"""Public pages that know their visitor, forms, a page for each user, and a stream of events."""

import json
import time

from django.contrib.auth.decorators import login_required
from django.contrib.auth.mixins import LoginRequiredMixin
from django.contrib.messages.views import SuccessMessageMixin
from django.http import StreamingHttpResponse
from django.shortcuts import render
from django.views.generic import CreateView, DetailView, ListView

from .models import Message, Note

# No stream outlives the lab.
STREAM_SECONDS = 60


class Notes(ListView):
    queryset = Note.objects.order_by("-pk")
    template_name = "notes/list.html"


class OneNote(DetailView):
    model = Note
    template_name = "notes/note.html"


class NewNote(LoginRequiredMixin, SuccessMessageMixin, CreateView):
    model = Note
    fields = ["title", "text"]
    template_name = "notes/form.html"
    success_message = "Your note is saved."

    def form_valid(self, form):
        form.instance.author = self.request.user
        return super().form_valid(form)


class Contact(SuccessMessageMixin, CreateView):
    """Open to everybody: the form's token is a cookie, and so is what is said on the next page."""

    model = Message
    fields = ["name", "text"]
    template_name = "notes/form.html"
    success_url = "/"
    success_message = "Thank you, %(name)s."


@login_required
def me(request):
    visits = request.session["visits"] = request.session.get("visits", 0) + 1
    return render(request, "notes/me.html", {"visits": visits})


def live(request):
    return render(request, "notes/live.html")


def chat(request):
    return render(request, "notes/chat.html")


def events(request):
    """Server-sent events: each new note, as it comes."""

    def stream():
        last = Note.objects.order_by("pk").values_list("pk", flat=True).last() or 0
        yield "event: ready\ndata: {}\n\n"
        for _ in range(STREAM_SECONDS * 5):
            for note in Note.objects.filter(pk__gt=last).order_by("pk"):
                last = note.pk
                yield f"data: {json.dumps({'title': note.title})}\n\n"
            # A server learns that nobody listens any more when it says something.
            yield ": still here\n\n"
            time.sleep(0.2)

    return StreamingHttpResponse(stream(), content_type="text/event-stream")
