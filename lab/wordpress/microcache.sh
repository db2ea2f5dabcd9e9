#!/usr/bin/env bash
# Microcaching, as in NGINX's article on it: `ab -c 10 -t 30 -k` on WordPress's front page, first with every
# request passed to PHP-FPM, then with a lifetime of one second and defaults otherwise.
#
#   SEC=30 LARDER_BIN=target/release/larder lab/wordpress/microcache.sh
seconds=${SEC:-30}
# Sites of names of their own, which nobody visits over TLS.
export LAB_CERT=files
source "$(dirname "$0")/start.sh" release
start_larder "$here/microcache.toml"

# Requests at PHP-FPM so far.
fetched() { wc -l <"$work/php-access.log"; }

# One row: name and the site's host. What the row before left unfinished is logged when it ends, so that is
# waited for.
row() {
  local before after
  sleep 5
  before=$(fetched)
  ab -q -c 10 -t "$seconds" -n 50000000 -k -H "Host: $2" "http://127.0.0.1:$http/" >"$work/ab.txt" 2>&1
  after=$(fetched)
  awk -v name="$1" -v fetched=$((after - before)) '
    /^Requests per second/ { rate = $4 }
    /^Failed requests/ { failed = $3 }
    /^Non-2xx/ { failed += $3 }
    /^Total:/ { min = $2; mean = $3; sd = $4; median = $5; max = $6 }
    END { printf "%-22s %12s %8s %8s %8s %8s %8s %10s\n", name, rate, mean, sd, median, max, failed, fetched }
  ' "$work/ab.txt"
}

printf '%-22s %12s %8s %8s %8s %8s %8s %10s\n' "" requests/s mean sd median max failed "runs of PHP"
row "all passed to PHP-FPM" passed.localhost
row "kept for a second" kept.localhost
echo "milliseconds; $seconds s each; 10 connections"
