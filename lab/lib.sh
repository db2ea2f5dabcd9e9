# shellcheck shell=bash
# What the labs with real applications share: a work folder, servers that are ended with the script, the
# database, PHP-FPM, certificates, Larder, the browser. Sourced by a lab's scripts, not run:
#
#   source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh" wordpress [BUILD]
#
# BUILD says whose binary is taken (debug, release) unless LARDER_BIN names one. Sets `lab` (this folder), `here`
# (the lab's own), `work`, `larder`, `host` (wordpress.localhost) and the free ports `http` and `https`. All that
# is started listens on loopback or on sockets in the work folder. KEEP=1 keeps that folder.
set -euo pipefail
export PATH=$PATH:/usr/sbin
lab=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
app=$1
here=$lab/$app
# What a check's command begins with: nsenter, where its servers are in a network of their own.
enter=()
larder=${LARDER_BIN:-${CARGO_TARGET_DIR:-$lab/../target}/${2:-debug}/larder}
[ -x "$larder" ] || { echo "no Larder at $larder: build it, or name it with LARDER_BIN" >&2; exit 1; }
work=$(mktemp -d --suffix="-larder-$app")
host=$app.localhost
pids=()

# Servers refuse to work as root; then they work as these.
db_user=$(id -un) web_user=$(id -un)
# Larder that root starts becomes another user, too; here it stays, whatever users the machine has.
stay=()
if [ "$(id -u)" = 0 ]; then
  db_user=mysql web_user=www-data stay=(--user root)
  chmod 755 "$work"
fi
mkdir -p "$work"/{run,db,tls,home}
[ "$(id -u)" != 0 ] || chmod 1777 "$work/run"

# The last started is the first to end.
finish() {
  local i
  for ((i = ${#pids[@]} - 1; i >= 0; i--)); do
    kill "${pids[i]}" 2>/dev/null || continue
    for _ in $(seq 100); do kill -0 "${pids[i]}" 2>/dev/null || break; sleep 0.1; done
    kill -9 "${pids[i]}" 2>/dev/null || true
  done
  if [ -n "${KEEP:-}" ]; then echo "kept: $work"; else rm -rf "$work"; fi
}
trap finish EXIT
trap 'exit 130' INT TERM

# start NAME COMMAND...: in the background, with its output in $work/NAME.log.
start() {
  local name=$1
  shift
  "$@" >"$work/$name.log" 2>&1 &
  pids+=($!)
}

# until_ready NAME COMMAND...: waits until the command succeeds, half a minute at most; else shows NAME's log.
until_ready() {
  local name=$1
  shift
  for _ in $(seq 300); do "$@" >/dev/null 2>&1 && return 0; sleep 0.1; done
  echo "not ready: $*" >&2
  tail -n 30 "$work/$name.log" >&2
  return 1
}

# quietly NAME COMMAND...: runs it to its end, two minutes at most, and shows its output when it fails.
quietly() {
  local name=$1
  shift
  timeout 120 "$@" >"$work/$name.log" 2>&1 || { tail -n 40 "$work/$name.log" >&2; return 1; }
}

# Ports that are free now, as many as asked for, all different.
free_ports() {
  node -e '
    const servers = Array.from({ length: +process.argv[1] }, () => require("net").createServer());
    let left = servers.length;
    for (const s of servers) s.listen(0, "127.0.0.1", () => {
      if (--left) return;
      console.log(servers.map((s) => s.address().port).join(" "));
      for (const s of servers) s.close();
    });' "$1"
}
read -r http https < <(free_ports 2)

# A Python with the packages of the lab's requirements.txt, in $python. Kept between runs; another list of packages makes
# another one.
python_packages() {
  python=$lab/../target/lab/python-$(cksum <"$here/requirements.txt" | cut -d' ' -f1)
  [ ! -e "$python/whole" ] || return 0
  quietly venv python3 -m venv --clear "$python"
  quietly pip "$python/bin/pip" install --quiet --disable-pip-version-check -r "$here/requirements.txt"
  touch "$python/whole"
}

query() { mariadb --no-defaults --socket="$work/run/db.sock" --user="$(id -un)" "$@"; }

# MariaDB with an empty database of this name.
start_database() {
  chown "$db_user" "$work/db"
  quietly db-install mariadb-install-db --no-defaults --datadir="$work/db" --user="$db_user" --skip-test-db \
    --auth-root-authentication-method=normal
  start db mariadbd --no-defaults --datadir="$work/db" --user="$db_user" --socket="$work/run/db.sock" \
    --skip-networking --pid-file="$work/run/db.pid" --innodb-buffer-pool-size=64M \
    --innodb-flush-log-at-trx-commit=0 --skip-grant-tables
  until_ready db query --execute 'SELECT 1'
  query --execute "CREATE DATABASE $1 CHARACTER SET utf8mb4"
}

# PHP-FPM with one pool, on $work/run/php.sock. Each answer that PHP makes is stamped, so that one that was given
# before is known without trusting any cache's word; each request is a line in $work/php-access.log.
start_php() {
  local fpm
  fpm=$(compgen -G '/usr/sbin/php-fpm*' | tail -n 1)
  cat >"$work/php-fpm.conf" <<CONF
[global]
error_log = /dev/stderr
daemonize = no
[lab]
$([ "$(id -u)" != 0 ] || printf 'user = %s\nlisten.owner = %s\n' "$web_user" "$web_user")
listen = $work/run/php.sock
pm = static
pm.max_children = ${PHP_CHILDREN:-6}
access.log = $work/php-access.log
access.format = "%m %r %s"
catch_workers_output = yes
${php_environment:-}
php_admin_value[auto_prepend_file] = $lab/stamp.php
php_admin_value[sendmail_path] = /bin/true
php_admin_value[session.save_path] = $work/run
php_admin_flag[display_errors] = off
php_admin_flag[log_errors] = on
CONF
  start php "$fpm" --nodaemonize --fpm-config "$work/php-fpm.conf"
  until_ready php test -S "$work/run/php.sock"
}

# Larder on $http and $https with the lab's configuration; @NAMES@ in it are filled in. Its certificate is from an
# authority of the lab's own: Pebble, which Larder asks for it, where Go is there to build that, or else openssl, whose
# certificate is in files. LAB_CERT=acme or files says which. Afterwards $work/tls/root.pem is what clients have to trust.
start_larder() {
  local certificate
  if [ "${LAB_CERT:-$(command -v go >/dev/null && echo acme)}" = acme ]; then
    certificate_by_acme
  else
    certificate_in_files
  fi
  sed "s|@HTTP@|$http|g; s|@HTTPS@|$https|g; s|@WORK@|$work|g; s|@TTL@|${ttl:-10m}|g; s|@HOST@|$host|g
    s|@CERTIFICATE@|$certificate|g" "${1:-$here/larder.toml}" >"$work/larder.toml"
  quietly larder-check "$larder" check "$work/larder.toml"
  start larder "$larder" serve "${stay[@]}" --config "$work/larder.toml" --admin-socket "$work/run/larder.sock"
  until_ready larder curl --silent --cacert "$work/tls/root.pem" --resolve "$host:$https:127.0.0.1" \
    --max-time 20 --output /dev/null "https://$host:$https/"
}

certificate_in_files() {
  local tls=$work/tls
  certificate="cert = \"$tls/cert.pem\"\nkey = \"$tls/key.pem\""
  {
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj '/CN=Larder lab' \
      -keyout "$tls/ca.key" -out "$tls/root.pem"
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$host" -keyout "$tls/key.pem" \
      -out "$tls/request.pem"
    openssl x509 -req -in "$tls/request.pem" -CA "$tls/root.pem" -CAkey "$tls/ca.key" -CAcreateserial -days 20 \
      -out "$tls/cert.pem" -extfile <(echo "subjectAltName=DNS:$host")
  } >"$tls/log" 2>&1 || { cat "$tls/log" >&2; return 1; }
}

certificate_by_acme() {
  local directory management dns name
  # The first time it is built from its Go module.
  timeout 580 "$lab/pebble.sh" build >"$work/pebble-build.log" 2>&1 || { cat "$work/pebble-build.log" >&2; return 1; }
  read -r directory management dns < <(free_ports 3)
  PORT=$directory MANAGEMENT_PORT=$management DNS_PORT=$dns HTTP_PORT=$http TLS_PORT=$https \
    quietly pebble "${enter[@]}" "$lab/pebble.sh" start "$work/pebble"
  for name in dns pebble; do pids+=("$(cat "$work/pebble/$name.pid")"); done
  cp "$work/pebble/root.pem" "$work/tls/root.pem"
  certificate="acme = { email = \"ops@example.org\", directory = \"https://127.0.0.1:$directory/dir\", "
  certificate+="ca = \"$work/pebble/ca.pem\", storage = \"$work/acme\" }"
}

# Trusts the lab's root the way a user would have a browser do it: in a profile of its own.
trust() {
  local db=$work/home/.pki/nssdb
  [ -e "$work/tls/root.pem" ] && [ ! -e "$db" ] || return 0
  mkdir -p "$db"
  certutil -N -d "sql:$db" --empty-password
  certutil -A -d "sql:$db" -n 'Larder lab' -t C,, -i "$work/tls/root.pem"
}

# checks FILE...: the lab's checks, one Node module after the other, of LAB_URL or the lab's site. Screenshots go to SHOTS.
# Each has CHECKS_SECONDS, 400 by default.
checks() {
  local file status=0
  [ -d "$lab/browser/node_modules/playwright-core" ] ||
    quietly npm npm --prefix "$lab/browser" ci --no-audit --no-fund
  trust
  for file in "$@"; do
    HOME=$work/home LAB_URL=${LAB_URL:-https://$host:$https} LAB_HTTP=http://$host:$http LAB_ROOT=$work/tls/root.pem \
      LAB_SHOTS=${SHOTS:-$lab/../target/lab/$app} LAB_WORK=$work timeout "${CHECKS_SECONDS:-400}" "${enter[@]}" node "$here/$file" || status=1
  done
  # PHP's and the application's complaints are no reason to fail, but one wants to see them.
  grep -hE 'PHP (Warning|Fatal|Parse)|panicked' "$work"/*.log | sort | uniq -c | sort -rn | head -n 20 || true
  ! grep -q panicked "$work/larder.log" || status=1
  return $status
}

# run_lab FILE...: the checks, or with the word `serve` nothing but the site until it is interrupted.
run_lab() {
  local word=$1
  shift
  if [ "$word" = serve ]; then
    trust
    echo "$app on https://$host:$https/, its authority's certificate is $work/tls/root.pem; Ctrl-C ends it"
    sleep infinity &
    pids+=($!)
    wait $! || true
  else
    checks "$@"
  fi
}
