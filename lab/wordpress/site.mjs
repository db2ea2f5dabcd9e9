// The lab's WordPress as its owner has it: edits by PHP on the command line, with the site's own address, the log of the
// purges that purge.php sent, and people who log in.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';

import { check } from '../browser/checks.mjs';
import { BASE, Visitor } from '../browser/visitor.mjs';

const work = process.env.LAB_WORK;
const log = `${work}/purges`;

export const ADMIN_BAR = 'id="wpadminbar"';

// Of PHP on the command line: it has the environment, and sends no mail.
const SETTINGS = ['-d', 'variables_order=EGPCS', '-d', 'sendmail_path=/bin/true'];

export const php = (code, environment = {}) =>
  execFileSync('php', [...SETTINGS, '-r', `require '${work}/site/wp-load.php'; ${code}`], {
    env: { ...process.env, HTTPS: 'on', HTTP_HOST: BASE.host, ...environment },
    timeout: 60_000,
  }).toString();

// Gives the post of this name another title, as its editor does.
export const edit = (name, title) =>
  php(`$p = get_page_by_path('${name}', OBJECT, 'post'); wp_update_post(['ID' => $p->ID, 'post_title' => '${title}']);`);

// From now on each post that is saved is purged.
export function beginPurges() {
  fs.writeFileSync(log, '');
  fs.chmodSync(log, 0o666);
}

// What was sent since the last call, a line each.
export function purges() {
  const sent = fs.readFileSync(log, 'utf8').trim().split('\n').filter(Boolean);
  fs.writeFileSync(log, '');
  return sent;
}

export async function logIn(login) {
  const visitor = new Visitor();
  // WordPress refuses a login whose browser did not bring its test cookie back.
  await visitor.get('/wp-login.php');
  const form = { log: login, pwd: `${login}-password`, 'wp-submit': 'Log In', testcookie: '1' };
  const answer = await visitor.ask('POST', '/wp-login.php', { form });
  const got = [...visitor.jar.keys()].some((name) => name.startsWith('wordpress_logged_in_'));
  check(`${login} logs in`, answer.status === 302 && got, answer.status);
  return visitor;
}
