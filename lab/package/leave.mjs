// The package with a site on it: a restart and an upgrade keep what the disk has and finish what was begun; then it is removed,
// comes again, and is purged.
import fs from 'node:fs';

import { check, part, sum } from '../browser/checks.mjs';
import { Visitor, isHit, seen } from '../browser/visitor.mjs';
import { Page } from './page.mjs';
import { alive, booted, file, has, inside, left, read, until } from './room.mjs';

const CONFIG = '/etc/larder/larder.toml';
const POST = '/the-first-post/';
const get = (path) => new Visitor().get(path);
const version = () => inside("dpkg-query -W -f '${Version}' larder").out.trim();
const answers = () => until(async () => (await get('/?answers').catch(() => ({}))).status === 200);
const conffile = () => fs.readdirSync(file('/etc/larder')).sort().join(' ');
let stored;

await part('a disk, and a restart', async () => {
  const [disk, size] = new Page('docs/guide/wordpress.md').said(/`(\[disk\]) (size = "[^"]+")`/);
  // A small system: the size alone is another.
  fs.writeFileSync(file(CONFIG), `${read(CONFIG)}\n${disk}\n${size.replace(/"[^"]+"/, '"256MiB"')}\n`);
  const done = inside('systemctl restart larder');
  check('the disk is taken', done.good && await answers(), done.all.trim());
  await get(POST);
  stored = await get(POST);
  check('a page is stored', stored.hit, seen(stored));
  inside('systemctl restart larder');
  await answers();
  const after = await get(POST);
  check('after a restart it is there at once', isHit(after, stored), seen(after));
});

await part('an upgrade', async () => {
  // PHP's answer takes longer than the daemon that is replaced would otherwise live.
  fs.writeFileSync(file('/var/www/wordpress/slow.php'), "<?php header('Cache-Control: no-store'); echo 'begun '; flush(); sleep(8); echo 'done';");
  const before = version();
  const process = inside('pgrep -u larder -x larder').out.trim();
  const slow = get('/slow.php');
  await until(() => inside("ss -Hxp state established src '*php8.2-fpm.sock'").out.includes('php'));
  const done = inside("apt-get install -o Dpkg::Options::=--force-confold ./larder-next.deb");
  if (!booted) inside('systemctl restart larder');
  check('apt installs the next version', done.good && version() === `${before}+lab1`, done.good ? version() : done.all.slice(-600));
  const whole = await slow;
  check('a request that was under way is answered whole', whole.status === 200 && whole.text === 'begun done', `${whole.status} ${whole.text}`);
  await answers();
  check('another process serves', inside('pgrep -u larder -x larder').out.trim() !== process);
  const after = await get(POST);
  check('what was stored is a hit at once', isHit(after, stored), seen(after));
  check("the owner's configuration stays, and the new one lies beside it",
    read(CONFIG).includes('example.com') && conffile() === 'larder.toml larder.toml.dpkg-dist', conffile());
});

await part('removed', async () => {
  if (!booted) inside('systemctl stop larder');
  const done = inside('apt-get remove larder');
  check('apt remove', done.good, done.good ? '' : done.all.slice(-600));
  const { processes, sockets } = alive();
  check('the daemon has ended, and nothing listens on 80 and 443', !processes && !sockets, processes + sockets);
  check('program, unit and pages are gone', !['/usr/bin/larder', '/usr/lib/systemd/system/larder.service', '/usr/share/doc/larder',
    '/usr/share/man/man1/larder.1.gz', '/run/larder'].some(has));
  check('configuration, certificates and cache are kept', has(CONFIG) && fs.readdirSync(file('/var/cache/larder')).length > 0);
});

await part('installed again', async () => {
  const done = inside('apt-get install ./larder-next.deb');
  if (!booted) inside('systemctl start larder');
  check('the site is back as it was', done.good && await answers(), done.good ? '' : done.all.slice(-600));
  const after = await get(POST);
  check('with what it had stored', isHit(after, stored), seen(after));
});

await part('purged', async () => {
  if (!booted) inside('systemctl stop larder');
  // What the owner made: settings of others that name the package's group, and WordPress's plugin.
  const done = inside('apt-get purge larder');
  check('apt purge', done.good && !/warning|not empty/i.test(done.all), done.good ? '' : done.all.slice(-600));
  const { processes, sockets } = alive();
  check('no process, nothing listens', !processes && !sockets, processes + sockets);
  const files = left().filter((name) => name !== '/var/www/wordpress/wp-content/mu-plugins/larder.php');
  check("nothing has its name but WordPress's plugin", files.length === 0, files.join(' '));
  const ids = inside('getent passwd larder; getent group larder').out.trim();
  check('neither user nor group is left', ids === '', ids);
});

sum('The package with a site on it');
