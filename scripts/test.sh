#!/usr/bin/env bash
# Everything the project checks, step by step, with a table and one counting line at the end. Each step's
# output is in target/test-logs/; that of a failed one is shown.
#
#   scripts/test.sh          all
#   scripts/test.sh fast     the build with its lints, and all tests of `cargo test`; no labs, no counts, no models
#   scripts/test.sh lint     formatting, clippy, tidy and docs only
set -uo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
logs=target/test-logs
rm -rf "$logs"
mkdir -p "$logs"
export CARGO_TERM_COLOR=never
export LARDER_BIN=${LARDER_BIN:-$(realpath -m "$target")/debug/larder}
passed=0 failed=0 skipped=0
table=() flaky=()
declare -A running commands
# The labs that have a browser: applications, HTTP/2's clients, and the dashboard.
applications=(wordpress mediawiki django http2-clients dashboard)
# Steps of many programs that wait for each other. One that fails runs again, alone, as a failed test does; passes it
# then, it is named as flaky. What a step finds by numbers, seeds or models has no second chance.
labs=("${applications[@]}" wordpress-restart wordpress-nodes grpc tools watchers import advise islands experiments)

# Runs a step's command, and leaves the seconds that it took, by the clock and of processors.
measured() {
  local name=$1 TIMEFORMAT='%0R %0U %0S'
  shift
  { time "$@" >"$logs/$name.log" 2>&1; } 2>"$logs/$name.time"
}

# Counts a finished step: name, exit status. Status 77 means that its tools cannot be had.
count() {
  local name=$1 status=$2 result=passed tests seconds user system
  case $status in
    0) passed=$((passed + 1)) ;;
    77) result=skipped skipped=$((skipped + 1)) ;;
    *) result=FAILED failed=$((failed + 1)) ;;
  esac
  tests=$(awk '/^test result:/ { p += $4; f += $6; s += $8 } END { print p + 0, f + 0, s + 0 }' "$logs/$name.log")
  read -r p f s <<<"$tests"
  passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
  read -r seconds user system <"$logs/$name.time"
  table+=("$(printf '%-18s %-8s %4d s, %4d s of processors' "$name" $result "$seconds" $((user + system)))")
  echo "${table[-1]}"
  if [ $result = FAILED ]; then
    tail -n 60 "$logs/$name.log"
    # A step goes on after its first failure: the end of its log is often another matter.
    grep -aE '^FAILED|^test .* FAILED|panicked at|^error' "$logs/$name.log" | tail -n 20
  fi
  [ $result = skipped ] && tail -n 1 "$logs/$name.log"
  return 0
}

step() {
  local status=0
  measured "$@" || status=$?
  count "$1" $status
}

# Starts a step that mostly waits, next to the others.
start() {
  local name=$1
  shift
  start_chain "$name:$*"
}

# Starts a chain of steps, one after the other, next to everything else. Each word is a step's name, and the
# command after the colon that runs it.
start_chain() {
  local step
  (
    for step in "$@"; do
      status=0
      measured "${step%%:*}" ${step#*:} || status=$?
      echo $status >"$logs/${step%%:*}.done"
    done
  ) &
  for step in "$@"; do
    running[${step%%:*}]=$!
    commands[${step%%:*}]=${step#*:}
  done
}

finish_started() {
  local name status repeated=()
  for name in "${!running[@]}"; do
    wait "${running[$name]}"
    read -r status <"$logs/$name.done"
    if [ "$status" != 0 ] && [ "$status" != 77 ] && [[ " ${labs[*]} " == *" $name "* ]]; then
      repeated+=("$name")
    else
      count "$name" "$status"
    fi
  done
  for name in "${repeated[@]}"; do repeat_lab "$name"; done
}

# Runs a lab again that failed; its first output stays beside.
repeat_lab() {
  local name=$1 first=$logs/$1.first
  mv "$logs/$name.log" "$first"
  echo "$name failed, and runs again:"
  tail -n 60 "$first"
  step "$name" ${commands[$name]}
  [[ ${table[-1]} == *FAILED* ]] || flaky+=("flaky: $name: $(grep -m 1 '^FAILED' "$first" || tail -n 1 "$first")")
}

# One pass compiles, lints and looks at the documentation.
linting=(env RUSTC_WORKSPACE_WRAPPER="$PWD/scripts/compiler.sh")

build() { "${linting[@]}" cargo build --workspace --all-targets; }

# What the build has warned of.
lints() {
  grep -q Finished "$logs/build.log" || { echo "what does not build is not linted"; return 1; }
  ! grep -A 12 '^warning' "$logs/build.log"
}

tests() { "${linting[@]}" "${xtask[@]}" test; }

labs_setup() { scripts/setup.sh package "${applications[@]}" watchers experiments || return 77; }

# The labs with applications share their tools; what they need was installed while the compiler ran.
application() {
  scripts/setup.sh "$1" || return 77
  lab/"$1"/run.sh
}

# A part of the lab's pages over restarts and kills; by hand it takes all of them.
restarts() {
  scripts/setup.sh wordpress || return 77
  lab/wordpress/restart.sh 80
}

# The same site behind three nodes of a cluster.
nodes() {
  scripts/setup.sh wordpress nats || return 77
  lab/wordpress/nodes.sh
}

# The experiments, each for some seconds: that they run, not what they measure.
experiments() {
  local name
  scripts/setup.sh experiments || return 77
  for name in mixed-10k second-hop microcache wordpress-https small-and-large-vps stops bodies disk disk-damage share crawlers grpc warmth; do
    lab/experiments/run.sh "$name" --smoke || return 1
  done
}

# The one of them that needs network namespaces.
islands() {
  ip netns add larder-islands && ip netns delete larder-islands || return 77
  scripts/setup.sh experiments nats cluster || return 77
  lab/experiments/run.sh islands --smoke
}

# Both compile what they have in common once.
modelled=(env RUSTFLAGS='--cfg loom --cfg shuttle' CARGO_TARGET_DIR="$target/models" RUST_BACKTRACE=0)

# Every interleaving of waiters and windows, by model checking. It takes a second without optimisation, and the
# release profile a minute and more to compile.
loom() { "${modelled[@]}" cargo test --package cache --test loom; }

# The disk store's threads under many schedules. Half a minute without optimisation, and somewhat more to compile.
schedules() { "${modelled[@]}" cargo test --package disk --lib schedules; }

# Tools that redraw a terminal, in one.
tools() {
  scripts/setup.sh tools || return 77
  lab/tools/run.sh
}

# nginx with configurations of the corpus, and Larder with their translations: the same requests to both.
imported() {
  scripts/setup.sh import || return 77
  lab/import/run.py
}

# Sites with planted faults: that they are found, and nothing else.
advise() {
  scripts/setup.sh advise || return 77
  lab/advise/run.sh --smoke
}

# gRPC's clients and server.
grpc() {
  scripts/setup.sh grpc || return 77
  lab/grpc/run.sh
}

# Prometheus, HAProxy and a kubelet's questions, from another network namespace; what Grafana's panels say of a load, and
# what a collector reads of traces.
watchers() {
  scripts/setup.sh watchers || return 77
  lab/watchers/run.sh && lab/watchers/panels.sh && lab/watchers/alerts.sh && lab/watchers/traces.sh
}

# A few clusters with faults: that no promise is broken, however slow the machine is.
cluster_faults() {
  scripts/setup.sh cluster || return 77
  lab/cluster/checker/checker.py --runs 10 --jobs 3 --safety
}

# Instructions per request path against the committed baseline.
counts() {
  scripts/setup.sh bench || return 77
  "${xtask[@]}" counts
}

# The demo build, which leaves parts out and has another cryptographic library: that it compiles.
demo_build() {
  RUSTFLAGS='--cfg larder_demo' CARGO_TARGET_DIR=$target/demo-build cargo check --package larder --no-default-features
}

# Tells whether one of the files has changed within a week before the newest commit.
recently_changed() {
  local now then
  now=$(git log -1 --format=%ct) then=$(git log -1 --format=%ct -- "$@") || return 0
  [ $((now - then)) -lt 604800 ]
}

# Licences, sources and bans of what it is built from; known faults of it too, where their database can be had.
deny() {
  local root
  root=$(realpath -m "$target")/tools
  export PATH=$PATH:$root/bin
  if ! cargo deny --version; then
    # Compiling it takes two minutes of a processor: once a week, and for a week after what it looks at has changed.
    if [ -z "${DENY:-}" ] && [ "$(date +%u)" != 1 ] && ! recently_changed Cargo.lock deny.toml; then
      echo "cargo deny was not run: Cargo.lock and deny.toml are as they were, and it is not Monday (DENY=1 runs it)"
      return 77
    fi
    nice cargo install --locked --debug --target-dir "$root/build" --root "$root" cargo-deny@0.20.2 ||
      { echo "cargo deny cannot be had"; return 77; }
    rm -rf "$root/build"
  fi
  if timeout 60 cargo deny fetch db; then
    cargo deny check
  else
    echo "advisories were not looked at: their database cannot be had"
    cargo deny check bans licenses sources
  fi
}

tables() {
  step tidy "${xtask[@]}" tidy
  step reference "${xtask[@]}" docs --check
}

mkdir -p "$target"
df -h "$target" | awk 'NR == 2 { print "free for the build:", $4 }'
step setup scripts/setup.sh basic
xtask=(cargo xtask)
mode=${1:-all}
if [ "$mode" = all ]; then
  start labs-setup labs_setup
  # What compiles into folders of its own: it waits for nobody, and takes the core that others leave.
  start_chain loom:loom schedules:schedules demo-build:demo_build deny:deny
fi
step fmt cargo fmt --all --check -- --color never
if [ "$mode" != lint ]; then
  # All that the tests need, in one go: xtask by itself has other features of a hundred dependencies, C among
  # them, and would compile them once more.
  step build build
  step lints lints
  [ -x "$target/debug/xtask" ] && xtask=("$target/debug/xtask")
else
  step lints cargo clippy --workspace --all-targets -- -D warnings
fi
tables
# It compiles on one core only, beside tests that mostly wait.
[ "$mode" = all ] && start counts counts
if [ "$mode" != lint ]; then
  step pebble lab/pebble.sh build
  step tests tests
fi
if [ "$mode" = all ]; then
  step caching-suite npm --prefix lab/cache-tests ci
  if [ -x "$LARDER_BIN" ]; then
    start cache-tests-rfc lab/cache-tests/run.sh rfc
    start cache-tests-safe lab/cache-tests/run.sh safe
    start cache-tests-rfc-h2 lab/cache-tests/run.sh rfc h2
    start cache-tests-safe-h2 lab/cache-tests/run.sh safe h2
    start h2spec lab/h2spec/run.sh
    start tools tools
    start watchers watchers
    start grpc grpc
    start import imported
    start advise advise
    start_chain cluster-faults:cluster_faults islands:islands
    # Each has a browser, and several at once would only wait for each other.
    chain=()
    for name in "${applications[@]}"; do chain+=("$name:application $name"); done
    chain+=(wordpress-restart:restarts wordpress-nodes:nodes)
    start_chain "${chain[@]}"
    # Servers and load alone, which wait for each other most of the time.
    start experiments experiments
  else
    echo "no binary at $LARDER_BIN: end-to-end suites cannot run"
    failed=$((failed + 1))
  fi
  finish_started
fi

echo
du -sh "$target" | awk '{ print "the build takes", $1 }'
printf '%s\n' "${table[@]}"
grep -hE '^([A-Za-z].*, (visited by|over)|the dashboard,) .* hold$' "$logs"/*.log
for suite in rfc rfc-h2 safe safe-h2; do
  [ -f "$logs/cache-tests-$suite.log" ] && echo "http-cache-tests, $suite: $(grep '^required ' "$logs/cache-tests-$suite.log")"
done
grep -hs '^advisories were not looked at' "$logs"/deny.log
# Tests and labs that failed once and passed alone: each is a bug, though it fails nobody's change.
grep -hs '^flaky: ' "$logs"/tests.log
[ ${#flaky[@]} -eq 0 ] || printf '%s\n' "${flaky[@]}"
# Again, and short: whoever sees only the end of the output learns why.
for row in "${table[@]}"; do
  read -r name result _ <<<"$row"
  [ "$result" = FAILED ] || continue
  echo "$name failed:"
  # A lab's checks; a test's panic, with what it says of it on the line after.
  grep -E '^test .* \.\.\. FAILED$|^FAILED ' "$logs/$name.log" | head -n 5
  grep -A1 'panicked at' "$logs/$name.log" | grep -v '^--$' | head -n 6
  grep -iE '^error|error:|no space left|not found' "$logs/$name.log" | grep -v '^test result: ' | head -n 5
  grep -v '^$' "$logs/$name.log" | tail -n 3
done
summary="$passed passed, $failed failed"
[ $skipped -gt 0 ] && summary+=", $skipped skipped"
echo "in $SECONDS s"
echo "$summary" | tee "$logs/summary"
[ $failed -eq 0 ]
