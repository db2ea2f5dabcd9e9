#!/usr/bin/env bash
# WordPress behind a Larder with a disk that is stopped as `systemctl restart` does it, started again, and killed: what
# visitors get then without WordPress being asked, and what becomes of edits and purges. Prints each check and fails when
# one does not hold.
#
#   lab/wordpress/restart.sh [PAGES]     of so many pages at most, default all of the sitemap's; LARDER_BIN names another
#                                        binary
export LAB_CERT=files
source "$(dirname "$0")/start.sh"
cat "$here"/{larder,restart}.toml >"$work/restart.toml"
# Long enough for no page to become stale between two requests, but for the one whose time is over on purpose.
ttl=10m start_larder "$work/restart.toml"
# The checks end this Larder and start others.
export LAB_LARDER=$larder LAB_PID=$work/larder.pid LAB_PAGES=${1:-1000}
echo "${pids[-1]}" >"$LAB_PID"
status=0
checks restart.mjs || status=1
# Whatever Larder the last check left.
pids+=("$(cat "$LAB_PID")")
exit $status
