// The room that is checked: commands run in it as its root, and what it has.
import { spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';

const room = `/proc/${process.env.LAB_LEADER}/root`;
export const booted = Boolean(process.env.LAB_BOOTED);
const leader = process.env.LAB_LEADER;
const VARIABLES = ['HOME=/root', 'TERM=dumb', 'LC_ALL=C.UTF-8', 'DEBIAN_FRONTEND=noninteractive',
  'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', 'CURL_CA_BUNDLE=/etc/lab-root.pem'];

const words = (command, folder) => ['--target', leader, '--all', '--root', '--', 'env', '-i', '--chdir', folder, ...VARIABLES,
  'bash', '-c', command];

// A shell command in the room, to its end.
export function inside(command, { folder = '/root', input = '' } = {}) {
  const done = spawnSync('nsenter', words(command, folder), { encoding: 'utf8', input, timeout: 180_000, maxBuffer: 1 << 26 });
  return { good: done.status === 0, status: done.status, out: done.stdout, err: done.stderr, all: done.stdout + done.stderr };
}

// A command that goes on until it is ended.
export function begin(command) {
  const child = spawn('nsenter', words(`echo $$ >/run/lab.pid; exec ${command}`, '/root'), { stdio: ['ignore', 'pipe', 'pipe'] });
  let said = '';
  for (const from of [child.stdout, child.stderr]) from.on('data', (bytes) => { said += bytes; });
  const ended = new Promise((resolve) => child.on('exit', resolve));
  return {
    said: () => said,
    async end() {
      inside('kill $(cat /run/lab.pid)');
      await ended;
    },
  };
}

// Waits, a minute at most, for what another process does.
export async function until(test) {
  for (let n = 0; n < 300; n++) {
    const found = await test();
    if (found) return found;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  return false;
}

export const file = (name) => path.join(room, name);
export const has = (name) => fs.lstatSync(file(name), { throwIfNoEntry: false }) !== undefined;
export const read = (name) => fs.readFileSync(file(name), 'utf8');

// What dpkg, apt and the system write about any package.
const ACCOUNTS = [/^var\/lib\/(dpkg|apt|systemd|private)\b/, /^var\/(log|cache\/(apt|man|ldconfig|debconf))\b/,
  /^(proc|sys|dev|run|tmp|root|var\/tmp)\b/, /^etc\/(ld\.so\.cache|machine-id|mtab)$/, /^etc\/(passwd|group|shadow|gshadow|subuid|subgid)-$/];

// Everything on the room's disk, and who its users are.
export function inventory() {
  const { out } = inside("find / -xdev -printf '%P %y %m %u:%g %l\\n' | sort; grep '' /etc/{passwd,group,shadow,gshadow}");
  return out.split('\n').filter((line) => line && !ACCOUNTS.some((one) => one.test(line)));
}

// Where Larder could have left something that no list of files has: whose its processes are, and what listens.
const PROCESSES = `for p in /proc/[0-9]*; do
  case $(readlink $p/exe) in /usr/bin/larder*) id -nu $(sed -n "s/^Uid:\\s*\\([0-9]*\\).*/\\1/p" $p/status) ;; esac
done | sort | xargs`;

export function alive() {
  const processes = inside(PROCESSES).out.trim();
  const sockets = inside('ss -Hltnx | grep -E "larder|:8780 |:80 |:443 "').out.trim();
  return { processes, sockets };
}

// Where files, directories and links of Larder's are, of any kind; the lab's own are in /root and /run/lab*, and pages that
// man has formatted are man's.
const LEFT = `find / -xdev \\( -path /root -o -path /proc -o -path /var/cache/man \\) -prune -o -iname "*larder*" -print | sort
  find /run /dev/shm -iname "*larder*" -not -path "/run/lab*"`;

export const left = () => inside(LEFT).out.split('\n').filter(Boolean);
