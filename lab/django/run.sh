#!/usr/bin/env bash
# A Django application on gunicorn, its chat on uvicorn, with Larder in front of it, over HTTPS, visited by people with a browser. Prints each
# check and fails when one does not hold.
#
#   lab/django/run.sh           LARDER_BIN names another binary, SHOTS another folder for screenshots
#   lab/django/run.sh serve     the site alone, until Ctrl-C
source "$(dirname "$0")/../lib.sh" django

python_packages
export LAB_WORK=$work PYTHONPATH=$here PYTHONDONTWRITEBYTECODE=1
quietly fill "$python/bin/python" "$here/fill.py"
DJANGO_SETTINGS_MODULE=notes.settings start app "$python/bin/gunicorn" --bind "unix:$work/run/gunicorn.sock" \
  --workers 1 --threads 8 --forwarded-allow-ips '*' 'django.core.wsgi:get_wsgi_application()'
DJANGO_SETTINGS_MODULE=notes.settings start chat "$python/bin/uvicorn" --uds "$work/run/chat.sock" --lifespan off \
  notes.chat:application
until_ready app test -S "$work/run/gunicorn.sock"
until_ready chat test -S "$work/run/chat.sock"
# Long enough for no page to become stale between two requests.
ttl=10m start_larder
run_lab "${1:-check}" people.mjs
