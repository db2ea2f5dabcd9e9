#!/usr/bin/env bash
# WordPress on PHP-FPM with Larder alone in front of it, over HTTPS, visited by scripts and by people with a
# browser. Prints each check and fails when one does not hold.
#
#   lab/wordpress/run.sh           LARDER_BIN names another binary, SHOTS another folder for screenshots
#   lab/wordpress/run.sh serve     the site alone, until Ctrl-C
# permalinks.mjs sets them as their owner does, by the page for that.
[ "${1:-check}" = serve ] || new_links=1
source "$(dirname "$0")/start.sh"
# Long enough for no page to become stale between two requests.
ttl=10m start_larder
export LAB_LARDER=$larder
run_lab "${1:-check}" permalinks.mjs visitors.mjs people.mjs shop.mjs purges.mjs plugin.mjs
