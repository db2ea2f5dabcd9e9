#!/usr/bin/env bash
# Brings up a real WordPress on a plain HTTP origin: Debian's wordpress and mariadb-server, PHP in Apache. All
# of it lives in one work folder, listens on loopback only, and touches no service of the system's.
#
#   ./up.sh [WORK FOLDER]        default $TMPDIR/larder-wordpress; PORT (9080) is Apache's
#
# The site has 200 posts with comments, one post behind a password, one private post, and a user who may read
# it; see fill.php. `down.sh` ends what this started.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=${1:-${TMPDIR:-/tmp}/larder-wordpress}
port=${PORT:-9080}
export PATH=$PATH:/usr/sbin

if [ -f "$work/apache.pid" ] && kill -0 "$(cat "$work/apache.pid")" 2>/dev/null; then
  echo "already up in $work"
  exit 0
fi
mkdir -p "$work"/{db,run,site}
work=$(cd "$work" && pwd)
socket=$work/run/mariadb.sock

# Both servers refuse to work as root.
db_user=$(id -un) web_user=$(id -un) web_group=$(id -gn)
if [ "$(id -u)" = 0 ]; then
  db_user=mysql web_user=www-data web_group=www-data
  chmod 755 "$work"
  chown "$db_user" "$work/db" "$work/run"
fi

until_ready() {
  local log=$1
  shift
  for _ in $(seq 300); do "$@" >/dev/null 2>&1 && return 0; sleep 0.1; done
  echo "not ready: $*" >&2
  tail -n 30 "$log" >&2
  return 1
}

query() { mariadb --no-defaults --socket="$socket" --user="$(id -un)" "$@"; }

start_database() {
  if [ ! -d "$work/db/mysql" ]; then
    mariadb-install-db --no-defaults --datadir="$work/db" --user="$db_user" --skip-test-db \
      --auth-root-authentication-method=normal >"$work/db-install.log" 2>&1
  fi
  mariadbd --no-defaults --datadir="$work/db" --user="$db_user" --socket="$socket" --skip-networking \
    --pid-file="$work/run/mariadb.pid" --innodb-buffer-pool-size=64M --innodb-flush-log-at-trx-commit=0 \
    --skip-grant-tables >"$work/db.log" 2>&1 &
  echo $! >"$work/mariadb.pid"
  until_ready "$work/db.log" query --execute 'SELECT 1'
}

install_site() {
  query --execute 'CREATE OR REPLACE DATABASE wordpress CHARACTER SET utf8mb4'
  # A copy with links resolved: Debian's own wp-config.php asks for files in /etc. Languages are left out for
  # their size.
  tar -C /usr/share/wordpress --exclude=./wp-content/languages --exclude=./wp-config.php -chf - . |
    tar -C "$work/site" -xf -
  cat >"$work/site/wp-config.php" <<PHP
<?php
define('DB_NAME', 'wordpress');
define('DB_USER', 'wordpress');
define('DB_PASSWORD', '');
define('DB_HOST', 'localhost:$socket');
define('DB_CHARSET', 'utf8mb4');
// The host that the client asked for: the same pages are reached directly and through a proxy.
\$host = isset(\$_SERVER['HTTP_HOST']) ? \$_SERVER['HTTP_HOST'] : '127.0.0.1:$port';
define('WP_HOME', 'http://' . \$host);
define('WP_SITEURL', WP_HOME);
define('DISABLE_WP_CRON', true);
define('WP_HTTP_BLOCK_EXTERNAL', true);
define('AUTOMATIC_UPDATER_DISABLED', true);
foreach (['AUTH_KEY', 'SECURE_AUTH_KEY', 'LOGGED_IN_KEY', 'NONCE_KEY', 'AUTH_SALT', 'SECURE_AUTH_SALT',
    'LOGGED_IN_SALT', 'NONCE_SALT'] as \$name) {
    define(\$name, hash('sha256', 'lab' . \$name));
}
\$table_prefix = 'wp_';
if (!defined('ABSPATH')) {
    define('ABSPATH', __DIR__ . '/');
}
require_once ABSPATH . 'wp-settings.php';
PHP
  php -d display_errors=stderr "$here/fill.php" "$work/site" >"$work/fill.log" 2>&1 ||
    { head -n 30 "$work/fill.log" >&2; return 1; }
  touch "$work/installed"
}

start_apache() {
  local modules=/usr/lib/apache2/modules php_module
  php_module=$(compgen -G "$modules/libphp*.so" | head -n 1)
  cat >"$work/apache.conf" <<CONF
ServerRoot $work
ServerName 127.0.0.1
Listen 127.0.0.1:$port
PidFile $work/apache.pid
DefaultRuntimeDir $work
ErrorLog $work/apache-error.log
LoadModule mpm_prefork_module $modules/mod_mpm_prefork.so
LoadModule authz_core_module $modules/mod_authz_core.so
LoadModule dir_module $modules/mod_dir.so
LoadModule mime_module $modules/mod_mime.so
LoadModule headers_module $modules/mod_headers.so
LoadModule php_module $php_module
$([ "$(id -u)" = 0 ] && printf 'User %s\nGroup %s\n' "$web_user" "$web_group")
StartServers 4
MaxRequestWorkers 64
KeepAlive On
KeepAliveTimeout 15
MaxKeepAliveRequests 0
TypesConfig /etc/mime.types
LogFormat "%t %m %U%q %>s %{Cookie}i" lab
CustomLog $work/requests.log lab
DocumentRoot $work/site
# Which of the origin's answers this is: a cache hit repeats an earlier one's.
Header always set X-Origin-Request "%t"
<Directory $work/site>
  Require all granted
  DirectoryIndex index.php
  FallbackResource /index.php
</Directory>
<FilesMatch "\.php$">
  SetHandler application/x-httpd-php
</FilesMatch>
php_admin_value opcache.enable 1
php_admin_value sendmail_path /bin/true
CONF
  apache2 -f "$work/apache.conf" -k start 2>"$work/apache-start.log" || { cat "$work/apache-start.log" >&2; return 1; }
  until_ready "$work/apache-error.log" test -s "$work/apache.pid"
  until_ready "$work/apache-error.log" curl --silent --fail --max-time 20 --output /dev/null "http://127.0.0.1:$port/"
}

trap '[ $? = 0 ] || "$here/down.sh" "$work"' EXIT
start_database
[ -f "$work/installed" ] || install_site
start_apache
echo "WordPress on http://127.0.0.1:$port/ in $work"
