#!/usr/bin/env bash
# Debian's MediaWiki on PHP-FPM and SQLite with Larder alone in front of it, over HTTPS, visited by people with a
# browser. Prints each check and fails when one does not hold.
#
#   lab/mediawiki/run.sh           LARDER_BIN names another binary, SHOTS another folder for screenshots
#   lab/mediawiki/run.sh serve     the wiki alone, until Ctrl-C; ADMIN, admin-password-1
source "$(dirname "$0")/start.sh"
start_larder
LAB_MAX_AGE=$max_age run_lab "${1:-check}" people.mjs purges.mjs
