"""The lab's Django application over plain HTTP, with further sections. `LAB_FORM` is `faulty` or `well`."""

import os

from notes.settings import *  # noqa: F403  (settings are names of a module)

LAB_WELL = os.environ["LAB_FORM"] == "well"
SECURE_SSL_REDIRECT = SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = False
ROOT_URLCONF = "sites.notes_pages"
