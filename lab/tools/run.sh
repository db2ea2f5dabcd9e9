#!/usr/bin/env bash
# The tools that redraw a terminal (top, hist, stat, bench) and `larder log`, driven in a real one: tmux. A daemon is
# visited meanwhile; keys are pressed, the screen is captured, and what must stand there is looked for. Every screen
# is printed, for people to look at. Exit status 77: tmux cannot be had.
set -euo pipefail
cd "$(dirname "$0")/../.."
bin=$(realpath -m "${LARDER_BIN:-${CARGO_TARGET_DIR:-target}/debug/larder}")
command -v tmux >/dev/null && command -v curl >/dev/null || { echo "tmux or curl is missing"; exit 77; }

dir=$(mktemp -d)
on_tmux() { tmux -S "$dir/tmux" -f /dev/null "$@"; }
pids=()
ring=
finish() {
  on_tmux kill-server 2>/dev/null || true
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
  wait 2>/dev/null || true
  # A demo that is ended by a signal leaves its log ring for whoever wants to know why.
  rm -rf "$dir" ${ring:+"$ring"}
}
trap finish EXIT

# Its end is bounded, whatever happens here.
"$bin" demo --listen 127.0.0.1:0 --seconds 180 >"$dir/demo.log" 2>&1 &
demo=$!
pids+=("$demo")
for _ in $(seq 200); do
  grep -q 'third request' "$dir/demo.log" && break
  sleep 0.1
done
socket=$(sed -n 's/.*larder stat --admin-socket //p' "$dir/demo.log")
site=$(sed -n 's|.*\(http://[0-9.:]*\)/ .*one page.*|\1|p' "$dir/demo.log")
[ -n "$socket" ] && [ -n "$site" ] || { cat "$dir/demo.log"; exit 1; }
ring=$(curl -s --unix-socket "$socket" http://localhost/ring | sed -n 's/.*"folder":"\([^"]*\)".*/\1/p')

visit() {
  for n in $(seq 2000); do
    curl -s -A 'visitor/1.0' "$site/gen/20?as=1" "$site/gen/20?as=2" "$site/gen/1" \
      "$site/gen/20?as=1" "$site/new-$n" >/dev/null || return 0
  done
}
visit &
pids+=($!)

checks=0
screen() { on_tmux capture-pane -p; }
# Waits until the screen shows each of the patterns.
shows() {
  local pattern found
  for pattern in "$@"; do
    found=no
    for _ in $(seq 150); do
      # Read to its end: a pipe that is closed early would fail this script.
      if [ "$(screen | grep -cE -- "$pattern")" -gt 0 ]; then found=yes && break; fi
      sleep 0.1
    done
    if [ $found = no ]; then
      screen | grep -v '^$' || true
      echo "never on the screen: $pattern"
      exit 1
    fi
    checks=$((checks + 1))
  done
}
press() { on_tmux send-keys "$@"; }
look() { echo "--- $1"; screen; }
# Starts a tool in the shell.
start() { press "clear; $bin $1 --admin-socket $socket" Enter; }
# It must give the terminal back in order. Keys pressed before the shell has it would be the tool's.
ended() {
  shows '\$$'
  press "echo ended with \$?" Enter
  shows "^ended with $1"
}

on_tmux new-session -d -x 110 -y 32 "PS1='$ ' bash --norc --noprofile"
shows '^\$'

start top
shows 'larder top .*req/s' 'req/s +hits' '/gen/20\?as=1' 'most requests'
sleep 2
look "top, by URL"
press c
shows ' client' '127\.0\.0\.1'
press a
shows ' agent' 'visitor/1\.0'
press v m
shows ' served' ' MISS|PASS' 'most misses'
look "top, by how they were served, most misses first"
press u ' '
shows '\(paused\)'
on_tmux resize-window -x 50 -y 10
shows 'larder top'
look "top on a small screen"
on_tmux resize-window -x 110 -y 32
press q
ended 0

start hist
shows 'larder hist' '\|' '#' '\| hits +[0-9]' '# others +[0-9]' '1us +10us +100us' 'p99'
sleep 2
look "hist"
press t
shows 'until the first byte'
press q
ended 0

start stat
shows 'larder stat +up' 'requests_total +[0-9,]+ +[0-9]+\.[0-9]' 'hits_total'
look "stat"
press v
shows 'acme_challenges_total'
press PageDown
shows 'larder stat'
press q
ended 0

start "log"
shows '127\.0\.0\.1 - - \[.*"GET /gen/20\?as=1 HTTP/1\.1" 200 '
press C-c
ended 130

start "log --detail -n 1 -q 'served == hit'"
shows '^\* [0-9a-f]+ ' '-   request +GET http://' '-   time .* sent'
look "log --detail"
ended 0

start "log -q 'resp.staus == 200'"
shows 'did you mean .resp.status'
ended 1

# The load tool's live view leaves its table behind, also when a key ends it.
bench="clear; $bin bench -c 2 --warm-up 200ms"
press "$bench -d 60s --rounds 3 '$site/gen/20?as=1'" Enter
shows 'larder bench http://' 'round 1 at 2: [0-9]+ of 60 s' '[0-9,]+ responses/s' 'p99 [0-9.]+ us' 'q ends the run'
look "bench"
press q
shows '^connections +requests/s' '^ +2 +[0-9.]+ ' '^responses +[0-9]+ \('
ended 0
press "$bench -d 3s '$site/gen/20?as=1'" Enter
shows 'round 1 at 2: '
on_tmux resize-window -x 50 -y 12
shows 'responses/s'
on_tmux resize-window -x 110 -y 32
shows '^responses +[0-9]+ \('
ended 0
press "$bench --plain -n 500 '$site/gen/20?as=1'" Enter
shows '^responses +500 \(500 x 200\)'
ended 0

echo "Tools in a terminal: $checks checks hold"
