#!/usr/bin/env bash
# The dashboard in Chromium, on a real Larder under load: figures that move, charts that reach back a day, the boxes for
# purging and explaining, the demo's link, a thousand strings that would be markup, axe-core in light, dark and narrow, the
# keyboard alone, a stream that breaks,
# one site alone and the configuration in force; and the documentation's site, from its folder. Prints each check and fails when one does not hold.
#
#   lab/dashboard/run.sh [PART...]     format live ranges sites boxes strangers access demo report site broken, default all; LARDER_BIN names
#                                      another binary, SHOTS another folder for screenshots
#   lab/dashboard/run.sh picture       takes pictures over ten minutes, and makes docs/guide/dashboard.png again;
#                                      PICTURE_MINUTES is another time, GUIDE another file for the guide's picture
source "$(dirname "$0")/../lib.sh" dashboard

[ -d "$here/node_modules/axe-core" ] || quietly npm npm --prefix "$here" ci --no-audit --no-fund
# What is built into the binary is what its makers published, of the version that package.json says.
vendor=$lab/../crates/daemon/dashboard/vendor
for pair in uPlot.iife.min.js:uplot.js uPlot.min.css:uplot.css; do
  cmp "$here/node_modules/uplot/dist/${pair%:*}" "$vendor/${pair#*:}"
done
cmp "$here/node_modules/uplot/LICENSE" "$vendor/uplot.LICENSE"

config=larder.toml limit=400
if [ "${1:-}" = picture ]; then
  config=picture.toml
  export GUIDE=${GUIDE:-$lab/../docs/guide/dashboard.png} PICTURE_MINUTES=${PICTURE_MINUTES:-10}
  limit=$((PICTURE_MINUTES * 60 + 400))
fi
start origin node "$here/origin.mjs" "$work/run/origin.sock"
until_ready origin test -S "$work/run/origin.sock"
read -r admin nats < <(free_ports 2)
start nats nats-server -a 127.0.0.1 -p "$nats" -js -sd "$work/nats"
certificate_in_files
sed "s|@HTTP@|$http|g; s|@HTTPS@|$https|g; s|@ADMIN@|$admin|g; s|@NATS@|$nats|g; s|@WORK@|$work|g
  s|@DOCS@|$lab/../target/site|g; s|@CERTIFICATE@|$certificate|g" "$here/$config" >"$work/larder.toml"
quietly larder-check "$larder" check "$work/larder.toml"

# The part about a stream that breaks ends this Larder and starts another.
export LAB_LARDER=$larder LAB_PID=$work/larder.pid LAB_TOKENS=$work/tokens LAB_SITE=http://127.0.0.1:$http LAB_HTTPS=$https
serve=("$larder" serve "${stay[@]}" --config "$work/larder.toml" --admin-socket "$work/run/larder.sock")
printf '%s\n' "${serve[@]}" >"$work/larder.command"
start larder "${serve[@]}"
echo "${pids[-1]}" >"$LAB_PID"
until_ready larder curl --silent --fail --max-time 5 --output /dev/null "http://127.0.0.1:$admin/healthz"

[ $# -gt 0 ] || set -- format live ranges sites boxes strangers access demo report site broken
export LAB_DOCUMENTS=$lab/../target/site
case " $* " in *" site "*) quietly site make -C "$lab/.." site ;; esac
status=0
shots=${SHOTS:-$lab/../target/lab/dashboard}
for part in "$@"; do
  CHECKS_SECONDS=$limit LAB_URL=http://localhost:$admin SHOTS=$shots/$part checks "$part.mjs" || status=1
done
# Whatever Larder the last part left.
pids+=("$(cat "$LAB_PID")")
exit $status
