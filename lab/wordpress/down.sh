#!/usr/bin/env bash
# Ends what up.sh started in a work folder, by the process ids written there. DELETE=1 removes the folder too.
#
#   ./down.sh [WORK FOLDER]
set -euo pipefail
work=${1:-${TMPDIR:-/tmp}/larder-wordpress}

end() {
  local pid
  [ -s "$1" ] || return 0
  pid=$(cat "$1")
  # Only what still runs out of this folder: process ids are used again.
  if grep -qF "$work" "/proc/$pid/cmdline" 2>/dev/null; then
    kill "$pid"
    for _ in $(seq 200); do kill -0 "$pid" 2>/dev/null || break; sleep 0.05; done
  fi
  rm -f "$1"
}

end "$work/apache.pid"
end "$work/mariadb.pid"
[ -z "${DELETE:-}" ] || rm -rf "$work"
