// The package alone on a fresh system: installed as the guide says, looked at, removed, installed again, purged; and then the
// system is as it was.
import { check, part, sum } from '../browser/checks.mjs';
import { Page } from './page.mjs';
import { alive, booted, has, inside, inventory, left, read, until } from './room.mjs';

const guide = new Page('docs/guide/installing.md');
const [install, look] = guide.commands('sh', 'apt install').map(({ command }) => command);
const welcome = () => inside(look);
const serves = () => until(() => welcome().all.includes('<h1>Larder runs</h1>'));
const CONFIG = '/etc/larder/larder.toml';

// What changes between two lists, less what is expected; in a form that one reads.
function changes(before, after) {
  const [old, now] = [new Set(before), new Set(after)];
  return [...after.filter((line) => !old.has(line)).map((line) => `+${line}`),
    ...before.filter((line) => !now.has(line)).map((line) => `-${line}`)];
}

const skipped = (what) => console.log(`skipped: ${what}: only systemd does that`);
// In a system without systemd nobody starts what a package brings.
const started = () => booted || inside('systemctl start larder');

let before;

await part('installed', async () => {
  const planned = inside(install.replace('apt install', 'apt-get install --simulate'));
  const brings = [...planned.out.matchAll(/^Inst (\S+)/gm)].map(([, name]) => name).sort();
  check('apt brings what it needs and recommends, and nothing else',
    brings.join(' ') === 'ca-certificates larder openssl', brings.join(' '));
  // What it brings would stay where other packages recommend it, too.
  inside('apt-get install ca-certificates');
  before = inventory();
  const done = inside(install);
  check(`"${install}" is the package's name, and installs it`, done.good, done.good ? '' : done.all.slice(-600));
  // What apt says of itself where nobody types, and debconf of a system as small as this one.
  const said = done.all.replace(/^(debconf:|WARNING: apt does not have a stable CLI).*/gm, '');
  const [complaint] = /.*(?:warning|error|fail).*/i.exec(said) ?? [''];
  check('apt and the scripts have no complaint', complaint === '', complaint);
  started();
  check(`"${look}" shows the welcome page`, await serves(), booted ? inside('systemctl is-active larder').out.trim() : 'by hand');
  if (booted) {
    const state = inside('systemctl show larder --property=ActiveState,SubState,UnitFileState,NRestarts --value').out.trim();
    check('the service runs, and will after a boot', state.split(/\s+/).sort().join(' ') === '0 active enabled running', state.split(/\s+/).join(' '));
    check('no unit has failed', inside('systemctl --failed --quiet --no-legend').out.trim() === '');
  } else skipped('the service starts by itself');
});

await part('what is there', async () => {
  const user = inside('id larder').out.trim();
  check('a user and a group of its own', /^uid=(\d+)\(larder\) gid=(\d+)\(larder\) groups=\2\(larder\)$/.test(user), user);
  const account = inside('getent passwd larder').out.trim();
  check('nobody can log in as it', /:\/usr\/sbin\/nologin$/.test(account), account);
  const { processes } = alive();
  check('the daemon is that user, and one small process is root', processes === 'larder root', processes);
  const checked = inside('larder check');
  check('the configuration that comes with it is good', checked.good, checked.all.trim());
  for (const [, folder] of guide.text.matchAll(/^\| .* \| `(\/[^`]+)` \|$/gm)) {
    check(`${folder} is there, as the guide has it`, has(folder), inside(`stat -c '%A %U:%G' ${folder}`).out.trim());
  }
  const digests = inside('dpkg --verify larder');
  check('all files are as in the package', digests.good && digests.out === '', digests.all.trim());
});

await part('what people look up', async () => {
  const verbs = [...inside('larder --help').out.split('Commands:')[1].split('Options:')[0].matchAll(/^ {2}([a-z]+) /gm)]
    .map(([, verb]) => verb).filter((verb) => verb !== 'help');
  const pages = ['larder', 'larder.toml', ...verbs.map((verb) => `larder-${verb}`)];
  const missing = pages.filter((page) => !inside(`man ${page} | head -n 3 | grep -qi '^${page}('`).good);
  check(`man finds all ${pages.length} pages`, verbs.length > 10 && missing.length === 0, missing);
  const words = inside(`bash -c 'source /usr/share/bash-completion/bash_completion; _completion_loader larder;
    COMP_WORDS=(larder che); COMP_CWORD=1; COMP_LINE="larder che"; COMP_POINT=10
    $(complete -p larder | sed "s/.* -F \\([^ ]*\\).*/\\1/") larder che larder; echo "\${COMPREPLY[@]}"'`);
  check('bash completes a verb', words.out.trim().split(' ')[0] === 'check', words.all.trim());
  for (const name of ['zsh/vendor-completions/_larder', 'fish/vendor_completions.d/larder.fish']) {
    check(`${name} is there`, has(`/usr/share/${name}`));
  }
  if (booted) {
    const keeper = inside("systemctl list-units --plain --no-legend 'larder-keeper@*' | cut -d' ' -f1").out.trim();
    for (const [unit, file] of [['larder.service', 'larder.service'], [keeper, 'larder-keeper@.service']]) {
      const [figure] = /`systemd-analyze security` gives (\d+\.\d+)/.exec(new Page(`packaging/${file}`).text).slice(1);
      const analyzed = inside(`systemd-analyze security ${unit}`).out.trim().split('\n').at(-1);
      check(`systemd-analyze security gives ${figure}, as ${file} says`, analyzed.includes(`: ${figure} `), analyzed);
    }
    const verified = inside('systemd-analyze verify larder.service larder-keeper.socket larder-keeper@.service');
    check('systemd-analyze verify has nothing to say', verified.good && !verified.all.trim(), verified.all.trim());
    const uids = inside('grep -h ^Uid: /proc/$(pgrep -u larder -x larder)/status; id -u larder').out.trim().split(/\s+/).slice(1);
    // Without the capability for it, by what follows, it could not have become who it is.
    check('the daemon never was root', uids.length === 5 && new Set(uids).size === 1 && uids[0] !== '0', uids.join(' '));
    const rights = inside('grep -h "^Cap[PEB]" /proc/$(pgrep -u larder -x larder)/status').out.trim().split('\n');
    check('the daemon may open low ports and nothing else of what root may',
      rights.length === 3 && rights.every((line) => line.endsWith('\t0000000000000400')), rights.join(' '));
  } else skipped('systemd-analyze');
});

await part('a key that only root may read', async () => {
  const renew = (name) => inside(`openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=${name} \
    -keyout /etc/lab-keys/key.pem -out /etc/lab-keys/cert.pem`);
  const shown = async (name) => {
    const look = 'openssl s_client -connect localhost:8443 </dev/null | openssl x509 -noout -subject';
    const seen = await until(() => inside(look).out.includes(`CN = ${name}`));
    check(`a client sees the certificate "${name}"`, seen, inside(look).all.trim().split('\n').at(-1));
  };
  inside(`cp ${CONFIG} /root/kept.toml; install -d -m 700 /etc/lab-keys`);
  renew('first');
  check('the daemon may not read it', !inside('runuser -u larder -- cat /etc/lab-keys/key.pem').good);
  inside(`sed -i 's/^listen = .*/listen = [":8780", ":8443 tls"]/; s#^host = .*#&\\ntls = { cert = "/etc/lab-keys/cert.pem", key = "/etc/lab-keys/key.pem" }#' ${CONFIG}`);
  const restarted = inside('systemctl restart larder');
  check('it starts with it', restarted.good, restarted.all.trim());
  await shown('first');
  renew('second');
  const reloaded = inside('systemctl reload larder');
  check('a reload takes the one that was renewed', reloaded.good, reloaded.all.trim());
  await shown('second');
  if (booted) {
    inside("systemctl kill --signal=KILL 'larder-keeper@*'");
    renew('third');
    check('also where the keeper was ended', inside('systemctl reload larder').good);
    await shown('third');
  } else skipped('a keeper that was ended');
  inside(`sed -i '1i access_log = "/var/log/lab-access.log"' ${CONFIG}`);
  inside('systemctl restart larder');
  const logged = async (what) => {
    const seen = await until(() => welcome().good && inside('grep -c "GET / " /var/log/lab-access.log').good);
    check(what, seen, inside('stat -c "%A %U:%G" /var/log/lab-access.log').all.trim());
  };
  await logged('a log in a folder of root\'s is made and written');
  inside('rm /var/log/lab-access.log; kill -USR1 $(pgrep -u larder -x larder)');
  await logged('and made anew when it was moved');
  if (booted) {
    inside('systemctl mask --runtime --now larder-keeper.socket');
    check('without the keeper it does not start', !inside('systemctl restart larder').good);
    const said = inside('journalctl --unit=larder --no-pager --output=cat --lines=40').out;
    const [line] = /.*cert\.pem: Permission denied.*/.exec(said) ?? [''];
    check('and says which file takes it, and how to start it', line.includes('systemctl start larder-keeper.socket'), line);
    inside('systemctl unmask --runtime larder-keeper.socket; systemctl reset-failed larder');
  } else skipped('a start without the keeper');
  inside(`cp /root/kept.toml ${CONFIG}; rm -r /etc/lab-keys /var/log/lab-access.log; systemctl restart larder`);
  check('as before, it serves', await serves());
});

await part('a reload, and a restart for PHP-FPM as the guide says', async () => {
  const reloaded = inside('systemctl reload larder');
  check('systemctl reload larder', reloaded.good, reloaded.all.trim());
  inside(`cp ${CONFIG} /root/kept.toml && echo 'no such key' >>${CONFIG}`);
  const refused = inside('systemctl reload larder');
  check('of a faulty file it fails', !refused.good);
  check('and nothing changes', welcome().all.includes('<h1>Larder runs</h1>'));
  inside(`cp /root/kept.toml ${CONFIG}`);
  const lines = guide.block('sysusers', 'm larder');
  const [, place] = /^# (\S+)/.exec(lines);
  inside(`mkdir -p ${place.replace(/[^/]*$/, '')} && cat >${place}`, { input: lines });
  const done = inside(guide.command('sh', 'systemd-sysusers && systemctl restart'));
  check('a file of sysusers.d puts the user into another group', done.good && /\(www-data\)/.test(inside('id larder').out), done.all.trim());
  await serves();
  const groups = inside('grep ^Groups /proc/$(pgrep -u larder -x larder)/status').out.trim().split(/\s+/);
  check('and the daemon has it after the restart', groups.includes('33'), groups.join(' '));
  inside(`rm ${place}; rmdir ${place.replace(/\/[^/]*$/, '')}`);
});

await part('removed', async () => {
  inside(`echo '# the owner was here' >>${CONFIG}`);
  if (!booted) inside('systemctl stop larder');
  const done = inside('apt-get remove larder');
  check('apt remove', done.good, done.good ? '' : done.all.slice(-600));
  const { processes, sockets } = alive();
  check('the daemon has ended, and nothing listens', !processes && !sockets, processes + sockets);
  const state = inside("dpkg-query -W -f '${db:Status-Abbrev}' larder").out.trim();
  check('dpkg knows it as removed, its configuration kept', state === 'rc', state);
  const files = left().filter((name) => !name.startsWith('/var/lib/dpkg/'));
  // By policy (6.8, 10.7.3) conffiles and what was stored stay for a purge; the mask is deb-systemd-helper's, and so is the
  // record of what was enabled, by which a package that comes again is enabled or not as before.
  const kept = ['/etc/larder', CONFIG, '/var/cache/larder', '/var/lib/larder', '/var/log/larder'];
  if (booted) kept.push('/etc/systemd/system/larder.service', '/etc/systemd/system/multi-user.target.wants/larder.service');
  const isState = (name) => name.startsWith('/var/lib/systemd/deb-systemd-helper-');
  const isLink = (name) => name.startsWith('/etc/systemd/system/');
  const more = files.filter((name) => !kept.includes(name) && !isState(name) && !isLink(name));
  check('of its files what policy has kept is left', more.length === 0 && kept.slice(0, 5).every((name) => files.includes(name)), more.join(' '));
  console.log(`kept until the purge: ${files.join(' ')}`);
  if (booted) {
    const said = inside('systemctl is-enabled larder').all.trim();
    check('its unit cannot be started', !inside('systemctl start larder').good, said);
  }
});

await part('installed again', async () => {
  const done = inside(install);
  check('the same command installs it again', done.good && !/conffile|larder\.toml/.test(done.all), done.good ? '' : done.all.slice(-600));
  check('the configuration is the one that was kept', read(CONFIG).endsWith('# the owner was here\n'));
  started();
  check('it serves', await serves());
  if (booted) {
    const said = inside('systemctl is-enabled larder').out.trim();
    check('the service is enabled as before', said === 'enabled', said);
  }
});

await part('purged', async () => {
  if (!booted) inside('systemctl stop larder');
  const done = inside('apt-get purge larder');
  const [complaint] = /.*(?:warning|not empty).*/i.exec(done.all) ?? [''];
  check('apt purge', done.good && !complaint, done.good ? complaint : done.all.slice(-600));
  const { processes, sockets } = alive();
  check('no process, nothing listens', !processes && !sockets, processes + sockets);
  const files = left();
  check('nothing has its name', files.length === 0, files.join(' '));
  const ids = inside('getent passwd larder; getent group larder').out.trim();
  check('neither user nor group is left', ids === '', ids);
  const differs = changes(before, inventory());
  check('every file, link, folder, user and group is as before it was installed', differs.length === 0, differs.slice(0, 12).join(' ; '));
  if (booted) {
    const units = inside('systemctl list-units --all --plain --no-legend').out;
    const ours = units.split('\n').filter((line) => line.includes('larder')).join(' ');
    check('systemd knows no such unit', !inside('systemctl cat larder').good && ours === '', ours);
    check('no unit has failed', inside('systemctl --failed --quiet --no-legend').out.trim() === '');
  }
});

sum('Larder on a fresh Debian 12');
