// Somebody at the dashboard: signs in with a role's token, and reads what is there.
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';

import { check } from '../browser/checks.mjs';
import { Person } from '../browser/people.mjs';

export const SITE = new URL(process.env.LAB_SITE);

export const tokenOf = (role) => fs.readFileSync(path.join(process.env.LAB_TOKENS, `${role}.token`), 'utf8').trim();

export class Watcher extends Person {
  static async enter(browser, name, options) {
    const person = await Person.enter(browser, name, options);
    Object.setPrototypeOf(person, Watcher.prototype);
    person.violations = [];
    await person.page.exposeFunction('larderViolation', (text) => person.violations.push(text));
    await person.page.addInitScript(() => {
      document.addEventListener('securitypolicyviolation', (event) => {
        window.larderViolation(`${event.violatedDirective} ${event.blockedURI} ${event.sample}`);
      });
    });
    person.dialogs = [];
    person.page.on('dialog', (dialog) => {
      person.dialogs.push(dialog.message());
      dialog.dismiss();
    });
    return person;
  }

  async signIn(role) {
    await this.page.goto(process.env.LAB_URL);
    await this.page.fill('#token', tokenOf(role));
    await this.page.keyboard.press('Enter');
    await this.page.waitForSelector('#board:not([hidden])');
    await this.page.waitForSelector('#state[data-state="live"]');
  }

  // The figure of a tile, as a number and its unit.
  async tile(label) {
    const text = await this.page.locator('.tile', { hasText: label }).first().locator('.figure').innerText();
    const [, number, unit] = /^<?([\d.,]+)\s*(.*)$/s.exec(text.replace(/–/, '0')) ?? [];
    return { number: Number(number?.replaceAll(',', '')), unit, text };
  }

  async until(what, holds, ms = 15_000) {
    const end = Date.now() + ms;
    let good = false;
    while (!(good = await holds()) && Date.now() < end) await this.page.waitForTimeout(200);
    check(what, good);
  }

  async leave() {
    check(`${this.name}: the content security policy was never violated`, this.violations.length === 0, this.violations);
    check(`${this.name}: no dialog of a script`, this.dialogs.length === 0, this.dialogs);
    await super.leave();
  }
}

const agent = new http.Agent({ keepAlive: true, maxSockets: 8 });

export function get(target, headers = {}) {
  return new Promise((resolve, reject) => {
    const to = { host: SITE.hostname, port: SITE.port, path: target, headers, agent };
    http.get(to, (response) => {
      response.resume();
      response.on('end', () => resolve(response.statusCode));
    }).on('error', reject);
  });
}

// Visitors who ask for some hundred pages a second, nine of ten of them stored; the result ends them.
export function load() {
  let going = true;
  let sent = 0;
  const visitor = async (n) => {
    // No more than so many, whatever happens to who started them.
    for (let k = 0; going && k < 5_000; k += 1) {
      const host = { Host: n % 2 ? 'shop.example' : 'www.example' };
      const target = k % 10 === 0 ? `/passed/${n}` : `/kept/${(n * 7 + k) % 40}`;
      await get(target, host).catch(() => {});
      if (k % 50 === 0) await get(`/fail/${n}`, host).catch(() => {});
      sent += 1;
      await new Promise((resolve) => { setTimeout(resolve, 10); });
    }
  };
  const all = Promise.all(Array.from({ length: 8 }, (_, n) => visitor(n)));
  return async () => {
    going = false;
    await all;
    return sent;
  };
}
