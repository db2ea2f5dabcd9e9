// A stream that breaks: the page says so, and goes on when the daemon is there again. Last of all parts.
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';

import { check, part, sum } from '../browser/checks.mjs';
import { openBrowser } from '../browser/people.mjs';
import { Watcher } from './desk.mjs';

const browser = await openBrowser();
const work = process.env.LAB_WORK;
const alive = (pid) => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};

await part('the daemon is gone for a while', async () => {
  const anna = await Watcher.enter(browser, 'the operator');
  anna.expected.push(/net::ERR_\w+ GET .*\/api\/v1\/live/);
  await anna.signIn('read');
  const pid = Number(fs.readFileSync(process.env.LAB_PID, 'utf8'));
  process.kill(pid, 'SIGTERM');
  const state = (word) => anna.page.locator(`#state[data-state="${word}"]`).isVisible();
  await anna.until('it is said', () => state('lost'));
  await anna.shot('lost');
  check('what was there stays to be read', await anna.page.isVisible('#board'));
  for (let n = 0; alive(pid) && n < 350; n += 1) await anna.page.waitForTimeout(100);
  check('the daemon has ended although somebody looked', !alive(pid));
  const [program, ...args] = fs.readFileSync(path.join(work, 'larder.command'), 'utf8').trim().split('\n');
  const log = fs.openSync(path.join(work, 'larder-again.log'), 'w');
  const again = spawn(program, args, { stdio: ['ignore', log, log], detached: true });
  fs.writeFileSync(process.env.LAB_PID, String(again.pid));
  again.unref();
  await anna.until('live again, with the same token', () => state('live'), 30_000);
  await anna.leave();
});

await browser.close();
sum('the dashboard, a broken stream');
