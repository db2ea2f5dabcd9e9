// The lab's Larder, which a check ends and starts again with the same configuration.
import { execFile, spawn } from 'node:child_process';
import fs from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';

const run = promisify(execFile);
const work = process.env.LAB_WORK;
const larder = process.env.LAB_LARDER;
const admin = ['--admin-socket', `${work}/run/larder.sock`];

const pid = () => Number(fs.readFileSync(process.env.LAB_PID, 'utf8'));

function isAlive() {
  try {
    process.kill(pid(), 0);
    return true;
  } catch {
    return false;
  }
}

// A verb of the command line that speaks to the daemon.
export async function command(...words) {
  const { stdout } = await run(larder, [...words, ...admin], { timeout: 20_000 });
  return stdout;
}

export const figures = async () => JSON.parse(await command('stat', '--json'));

// Waits until it holds, a minute at most.
export async function until(what, holds) {
  for (let n = 0; n < 600; n += 1) {
    if (await holds()) return;
    await sleep(100);
  }
  throw new Error(`not within a minute: ${what}`);
}

// What is on disk, and whether more is on its way there.
export async function disk() {
  const [volume] = Object.values((await figures()).disk);
  return { records: volume.records, rests: volume.queued_bytes === 0 };
}

// Sends the signal and does nothing else: what follows does not wait for the end.
export const signal = (name) => process.kill(pid(), name);

export async function stop(name) {
  signal(name);
  await until('the daemon has ended', () => !isAlive());
}

// Starts another one; it has found all that is on the disk then.
export async function start() {
  const log = fs.openSync(`${work}/larder.log`, 'a');
  const stay = process.getuid() === 0 ? ['--user', 'root'] : [];
  const words = ['serve', ...stay, '--config', `${work}/larder.toml`, ...admin];
  const child = spawn(larder, words, { stdio: ['ignore', log, log], detached: true });
  child.unref();
  fs.closeSync(log);
  fs.writeFileSync(process.env.LAB_PID, String(child.pid));
  await until('the daemon answers', async () => {
    try {
      return (await figures()).disk_finding === 0;
    } catch {
      return false;
    }
  });
}
