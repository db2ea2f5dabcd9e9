#!/usr/bin/env bash
# Seed 000, on the real WordPress: started here, then measured by run.py.
here=$(cd "$(dirname "$0")" && pwd)
source "$here/../../wordpress/start.sh"
certificate_in_files
# All that serves shares the servers' core.
if command -v taskset >/dev/null && [ "$(nproc)" -gt 1 ]; then
  for pid in "${pids[@]}"; do
    for one in "$pid" $(pgrep -P "$pid" || true); do taskset -apc 0 "$one" >/dev/null; done
  done
fi
python3 "$lab/experiments/wordpress-https/run.py" "$work"
