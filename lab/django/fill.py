"""Makes the lab's database and its people. usage: python fill.py"""

import os

import django

os.environ["DJANGO_SETTINGS_MODULE"] = "notes.settings"
django.setup()

from django.contrib.auth.models import User  # noqa: E402  (needs what was set up above)
from django.core.management import call_command  # noqa: E402

from notes.models import Note  # noqa: E402

call_command("migrate", run_syncdb=True, verbosity=0)
call_command("collectstatic", interactive=False, verbosity=0)
for name, last_name in (("edith", "Editor"), ("rita", "Reader")):
    User.objects.create_user(
        name, f"{name}@example.org", f"{name}-password",
        first_name=name.title(), last_name=last_name, is_staff=name == "edith", is_superuser=name == "edith",
    )
for number in range(1, 21):
    Note.objects.create(title=f"Note {number}", text=f"The text of note {number}.")
