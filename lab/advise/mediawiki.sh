#!/usr/bin/env bash
# The lab's MediaWiki before `larder advise`; started by run.sh.
here=$(cd "$(dirname "$0")" && pwd)
# Longer than a round.
max_age=3600
source "$here/../mediawiki/start.sh"
for title in Mirror Browser Plain; do
  for number in 1 2 3 4 5; do
    echo "About $title $number. See [[Alpha]]." | quietly "fill-$title" php $maintenance/edit.php --summary first "$title $number"
  done
done
cat "$lab/advise/sites/mediawiki.php" | tail -n +2 >>"$settings"
[ "$(id -u)" != 0 ] || chown -R "$web_user" "$work/data"
LAB_SITE=$work LARDER_BIN=$larder python3 "$lab/advise/run.py" "$work" "$LAB_RESULTS" mediawiki
