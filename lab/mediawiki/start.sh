# shellcheck shell=bash
# Sourced by the scripts of this folder, not run: brings up Debian's MediaWiki on PHP-FPM and SQLite.
#
#   source start.sh             max_age says how long a page may be kept
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh" mediawiki

# How long a page may be kept, by MediaWiki's own word. Long enough for two visits, short enough to wait for.
max_age=${max_age:-20}
maintenance=/usr/share/mediawiki/maintenance
settings=$work/LocalSettings.php
mkdir "$work/data"
quietly install php $maintenance/install.php --dbtype sqlite --dbpath "$work/data" --dbname wiki \
  --scriptpath '' --server "https://$host:$https" --lang en --pass admin-password-1 --skins Vector \
  --confpath "$work" 'Larder Wiki' Admin
cat >>"$settings" <<PHP
# Pages at /wiki/TITLE, as in MediaWiki's manual for nginx.
\$wgArticlePath = '/wiki/\$1';
# Shared caches may keep pages.
\$wgUseCdn = true;
\$wgCdnMaxAge = $max_age;
# Jobs run when a page is asked for; here nobody waits for them.
\$wgJobRunRate = 0;
\$wgEnableEmail = false;
\$wgCacheDirectory = "$work/data";
\$wgPasswordAttemptThrottle = false;
// The maintenance scripts purge what they change; what people change is seen when the pages' time is over.
if ( PHP_SAPI === 'cli' ) {
    \$wgCdnServers = [ '127.0.0.1:$http' ];
    \$wgInternalServer = 'http://$host:$https';
    // Or it tells caches in datagrams.
    if ( getenv( 'LAB_PURGES_BY' ) === 'htcp' ) {
        \$wgCdnServers = [];
        \$wgHTCPRouting = [ '' => [ 'host' => '127.0.0.1', 'port' => $https ] ];
    }
}
PHP
export MW_CONFIG_FILE=$settings
quietly fill-user php $maintenance/createAndPromote.php Edith edith-password-1
echo 'The first text of Alpha.' | quietly fill-alpha php $maintenance/edit.php --summary first Alpha
for title in Beta Gamma Delta; do
  echo "About $title. See [[Alpha]]." | quietly "fill-$title" php $maintenance/edit.php --summary first "$title"
done
[ "$(id -u)" != 0 ] || chown -R "$web_user" "$work/data"
php_environment="env[MW_CONFIG_FILE] = $settings" start_php
