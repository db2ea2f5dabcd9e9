#!/usr/bin/env bash
# A crowd and a crawler, on the real WordPress: started here, then measured by run.py.
here=$(cd "$(dirname "$0")" && pwd)
source "$here/../../wordpress/start.sh"
php=${pids[-1]}
# All that serves shares the servers' core.
if command -v taskset >/dev/null && [ "$(nproc)" -gt 1 ]; then
  for pid in "${pids[@]}"; do
    for one in "$pid" $(pgrep -P "$pid" || true); do taskset -apc 0 "$one" >/dev/null; done
  done
fi
python3 "$lab/experiments/crawlers/run.py" "$work" "$php"
