# shellcheck shell=bash
# Sourced by the scripts of this folder, not run: brings up Debian's WordPress on PHP-FPM and MariaDB.
#
#   source start.sh [BUILD]      BUILD: whose binary, unless LARDER_BIN names one
#
# The site has 200 posts with comments, one post behind a password, one private post, an editor and a reader; see
# fill.php. Links are pretty, or with `new_links=1` as in a new WordPress.
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh" wordpress "${1:-debug}"

start_database wordpress
# A copy with links resolved: Debian's own wp-config.php asks for files in /etc. Languages are left out for their
# size.
mkdir "$work/site"
tar -C /usr/share/wordpress --exclude=./wp-content/languages --exclude=./wp-config.php -chf - . |
  tar -C "$work/site" -xf -
mkdir -p "$work/site/wp-content/uploads" "$work/site/wp-content/mu-plugins"
cp "$here"/{purge,comments,cart}.php "$work/site/wp-content/mu-plugins/"
[ "$(id -u)" != 0 ] || chown "$web_user" "$work/site/wp-content/uploads"
cat >"$work/site/wp-config.php" <<PHP
<?php
define('DB_NAME', 'wordpress');
define('DB_USER', 'wordpress');
define('DB_PASSWORD', '');
define('DB_HOST', 'localhost:$work/run/db.sock');
define('DB_CHARSET', 'utf8mb4');
// As the client asked. A wrong HTTPS or Host parameter would show as redirects.
define('WP_HOME', (empty(\$_SERVER['HTTPS']) ? 'http://' : 'https://') . (\$_SERVER['HTTP_HOST'] ?? '$host'));
define('WP_SITEURL', WP_HOME);
define('DISABLE_WP_CRON', true);
define('WP_HTTP_BLOCK_EXTERNAL', true);
define('WP_ACCESSIBLE_HOSTS', '127.0.0.1');
define('LAB_PROXY', '127.0.0.1:$http');
define('LARDER_ADDRESS', getenv('LAB_ADDRESS') ?: LAB_PROXY);
define('LAB_PURGE', '$work/purges');
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
quietly fill env LAB_NEW_LINKS="${new_links:-}" HTTPS=on HTTP_HOST="$host:$https" php -d variables_order=EGPCS -d display_errors=stderr \
  "$here/fill.php" "$work/site"
start_php
