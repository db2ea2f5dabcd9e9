#!/usr/bin/env bash
# Microcaching, as in NGINX's article on it: `ab -c 10 -t 30 -k` on WordPress's front page, alone and behind
# Larder with a lifetime of one second and defaults otherwise.
#
#   SEC=30 LARDER_BIN=target/release/larder ./microcache.sh
set -euo pipefail
seconds=${SEC:-30}
export PATH=$PATH:/usr/sbin
source "$(dirname "$0")/start.sh" release 1s

# Requests at the origin so far. Apache itself sends "OPTIONS *" to children that it wants to end.
fetched() { grep -vc 'OPTIONS \*' "$work/requests.log"; }

# One row: name and address. The origin's own log counts its requests; what the row before left unfinished is
# logged when it ends, so that is waited for.
row() {
  local before after
  sleep 5
  before=$(fetched)
  ab -q -c 10 -t "$seconds" -n 50000000 -k "http://$2/" >"$work/ab.txt" 2>&1
  after=$(fetched)
  awk -v name="$1" -v fetched=$((after - before)) '
    /^Requests per second/ { rate = $4 }
    /^Failed requests/ { failed = $3 }
    /^Non-2xx/ { failed += $3 }
    /^Total:/ { min = $2; mean = $3; sd = $4; median = $5; max = $6 }
    END { printf "%-22s %12s %8s %8s %8s %8s %8s %10s\n", name, rate, mean, sd, median, max, failed, fetched }
  ' "$work/ab.txt"
}

printf '%-22s %12s %8s %8s %8s %8s %8s %10s\n' "" requests/s mean sd median max failed "at origin"
row "WordPress alone" "127.0.0.1:$port"
row "behind Larder" "$address"
echo "milliseconds; $seconds s each; 10 connections"
