// People with a browser: Debian's Chromium, each person with cookies, cache and storage of their own. Every error
// on a page's console, every request of a page that fails or is answered with 400 or more, and every request to
// another host is a problem, and problems are failed checks.
import fs from 'node:fs';
import path from 'node:path';

import { chromium } from 'playwright-core';

import { afterTrouble, check } from './checks.mjs';
import { BASE, isHit, saysHit } from './visitor.mjs';

const shots = process.env.LAB_SHOTS;
let number = 0;
const inside = new Set();

// With `keep`, screenshots of an earlier browser stay.
export async function openBrowser({ keep = false } = {}) {
  if (!keep) fs.rmSync(shots, { recursive: true, force: true });
  fs.mkdirSync(shots, { recursive: true });
  afterTrouble.push(async (part) => {
    for (const person of inside) await person.shot(`trouble ${part} ${person.name}`);
  });
  return chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    // Chromium's sandbox cannot be had as root. Certificates are checked as ever.
    chromiumSandbox: process.getuid() !== 0,
    args: [
      // Nobody leaves this machine.
      `--host-resolver-rules=MAP *.localhost 127.0.0.1, MAP ${BASE.hostname} 127.0.0.1, EXCLUDE localhost, EXCLUDE 127.0.0.1, MAP * ~NOTFOUND`,
      '--no-proxy-server',
    ],
  });
}

export class Person {
  static async enter(browser, name, options = {}) {
    const person = new Person();
    person.name = name;
    person.problems = [];
    // Patterns of problems that this person's way has to have, such as a page that is not there.
    person.expected = [];
    person.context = await browser.newContext({ viewport: { width: 1200, height: 900 }, ...options });
    person.context.setDefaultTimeout(30_000);
    person.context.on('page', (page) => person.#watch(page));
    person.page = await person.context.newPage();
    inside.add(person);
    return person;
  }

  #watch(page) {
    const add = (text) => this.problems.push(text);
    page.on('console', (message) => {
      // What could not be loaded is counted below, with its method and status.
      if (message.type() !== 'error' || message.text().startsWith('Failed to load resource')) return;
      add(`console: ${message.text()} (${message.location().url})`);
    });
    page.on('pageerror', (error) => add(`script: ${error.message}`));
    page.on('response', (response) => {
      if (response.status() >= 400) add(`${response.status()} ${response.request().method()} ${response.url()}`);
    });
    page.on('requestfailed', (request) => {
      // A page that is left gives up what it was still asking for.
      const why = request.failure()?.errorText;
      if (why !== 'net::ERR_ABORTED') add(`${why} ${request.method()} ${request.url()}`);
    });
    page.on('request', (request) => {
      const url = new URL(request.url());
      if (['http:', 'https:'].includes(url.protocol) && url.host !== BASE.host) add(`foreign ${request.url()}`);
    });
  }

  // Opens a page; the result says whether it was a hit, by Larder's word, and which of the origin's answers it is.
  async open(where) {
    const response = await this.page.goto(new URL(where, BASE).href);
    const headers = await response.allHeaders();
    return {
      status: response.status(),
      hit: saysHit(headers['cache-status']),
      stamp: headers['x-origin-request'],
      headers,
      html: await this.page.content(),
    };
  }

  async shot(name) {
    number += 1;
    const file = `${String(number).padStart(2, '0')}-${name.replace(/\W+/g, '-')}.png`;
    await this.page.screenshot({ path: path.join(shots, file) });
  }

  // Ends this person's visit; what went wrong during it is a failed check.
  async leave() {
    inside.delete(this);
    await this.context.close();
    const bad = this.problems.filter((text) => !this.expected.some((pattern) => pattern.test(text)));
    check(`${this.name}: no console errors, no failed requests`, bad.length === 0, [...new Set(bad)].join(' ; '));
  }
}

// The given words of a page that a stranger must not see in it.
export function traces(html, words) {
  return words.filter((word) => (word instanceof RegExp ? word.test(html) : html.includes(word)));
}

// How strangers see pages: two people open one, the second's is a hit, and neither has a trace of others, `marks` being
// what only the pages of people who are known have. Where lifetimes are short the second may have renewed the page.
export function strangers(browser, marks, { mayRenew = false } = {}) {
  return async (what, path, text) => {
    const enter = (name) => Person.enter(browser, `anonymous ${name}, ${what}`);
    const [anna, bert] = [await enter('Anna'), await enter('Bert')];
    const pages = [await anna.open(path), await bert.open(path)];
    if (mayRenew && pages[0].stamp !== pages[1].stamp) pages.push(await bert.open(path));
    const [first, second] = pages.slice(-2);
    check(`${what}: a stranger's page is a hit for the next`, isHit(second, first), `${first.hit} ${second.hit}`);
    for (const page of pages) {
      const found = traces(page.html, marks);
      check(`${what}: no trace of others`, page.status === 200 && found.length === 0, found);
      check(`${what}: says what it should`, page.html.includes(text));
    }
    await bert.shot(what);
    await anna.leave();
    await bert.leave();
  };
}
