"""A chat over WebSocket: what anyone says reaches everybody, with the name that their session has."""

from http.cookies import SimpleCookie

import django

django.setup()

from asgiref.sync import sync_to_async  # noqa: E402  (needs what was set up above)
from django.conf import settings  # noqa: E402
from django.contrib.auth import SESSION_KEY, get_user_model  # noqa: E402
from django.contrib.sessions.backends.db import SessionStore  # noqa: E402

present = set()


def name_of(headers):
    """Whose session this is."""
    cookies = SimpleCookie(headers.get(b"cookie", b"").decode("latin-1"))
    key = cookies.get(settings.SESSION_COOKIE_NAME)
    user = key and SessionStore(key.value).get(SESSION_KEY)
    return get_user_model().objects.get(pk=user).username if user else "somebody"


async def application(scope, receive, send):
    if scope["type"] != "websocket":
        raise ValueError(f"no {scope['type']} here")
    headers = dict(scope["headers"])
    await receive()
    # Other sites' scripts must not speak for their visitors.
    if headers.get(b"origin") != b"https://" + headers.get(b"host", b""):
        await send({"type": "websocket.close"})
        return
    name = await sync_to_async(name_of)(headers)
    await send({"type": "websocket.accept"})
    present.add(send)
    try:
        while (event := await receive())["type"] == "websocket.receive":
            for other in list(present):
                await other({"type": "websocket.send", "text": f"{name}: {event['text']}"})
    finally:
        present.discard(send)
