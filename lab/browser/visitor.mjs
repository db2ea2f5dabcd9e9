// Visitors as far as caches are concerned: they ask over HTTPS, keep cookies and send them back. What they get is
// known to come from the origin or from the cache by the origin's stamp (X-Origin-Request) and by Cache-Status.
import fs from 'node:fs';
import https from 'node:https';

import { check } from './checks.mjs';

export const BASE = new URL(process.env.LAB_URL);
const ca = fs.readFileSync(process.env.LAB_ROOT);

export function saysHit(cacheStatus) {
  return /;\s*hit\b/.test(cacheStatus ?? '');
}

export class Visitor {
  // Of several nodes of the site, `port` is the one that is asked.
  constructor(cookies = {}, port = BASE.port) {
    this.jar = new Map(Object.entries(cookies));
    this.port = port;
  }

  // What the cookies of the answer to `method path` make of this visitor stays.
  ask(method, path, { form, body, fields = {} } = {}) {
    const headers = { Host: BASE.host, ...fields };
    if (this.jar.size) headers.Cookie = [...this.jar].map(([name, value]) => `${name}=${value}`).join('; ');
    if (form) {
      body = new URLSearchParams(form).toString();
      headers['Content-Type'] = 'application/x-www-form-urlencoded';
    }
    if (body !== undefined) headers['Content-Length'] = Buffer.byteLength(body);
    const to = { host: '127.0.0.1', port: this.port, servername: BASE.hostname, ca, agent: false };
    return new Promise((resolve, reject) => {
      const request = https.request({ ...to, method, path, headers, timeout: 30_000 }, (response) => {
        const pieces = [];
        response.on('data', (piece) => pieces.push(piece));
        response.on('error', reject);
        response.on('end', () => resolve(this.#read(response, Buffer.concat(pieces))));
      });
      request.on('timeout', () => request.destroy(new Error(`no answer to ${method} ${path}`)));
      request.on('error', reject);
      request.end(body);
    });
  }

  get(path, more) {
    return this.ask('GET', path, more);
  }

  #read(response, bytes) {
    for (const cookie of response.headers['set-cookie'] ?? []) {
      const [name, ...value] = cookie.split(';')[0].split('=');
      this.jar.set(name, value.join('='));
    }
    return {
      status: response.statusCode,
      headers: response.headers,
      stamp: response.headers['x-origin-request'],
      hit: saysHit(response.headers['cache-status']),
      bytes,
      text: bytes.toString(),
    };
  }
}

// What was seen, for the table.
export function seen(...answers) {
  return answers.map((a) => `${a.status}/${a.hit ? 'hit' : 'origin'}`).join(' ');
}

// Whether `answer` is the stored `earlier` one, by its stamp and by Larder's word.
export function isHit(answer, earlier) {
  return answer.hit && answer.stamp === earlier.stamp;
}

export async function secondIsHit(what, path, visitor = new Visitor(), more = {}) {
  const first = await visitor.get(path, more);
  const second = await visitor.get(path, more);
  check(`${what}: second request is a hit`, first.status === 200 && isHit(second, first), seen(first, second));
  return first;
}

export async function neverHit(what, visitor, path, { times = 3, status = 200, ...more } = {}) {
  const answers = [];
  for (let n = 0; n < times; n++) answers.push(await visitor.get(path, more));
  const fresh = new Set(answers.map((a) => a.stamp)).size === times && answers.every((a) => !a.hit);
  check(`${what}: never a hit`, fresh && answers.every((a) => a.status === status), seen(...answers));
  return answers;
}

// A file: its type, its validator, a part of it, and that nobody may write to it.
export async function isFile(path, type) {
  const visitor = new Visitor();
  const whole = await visitor.get(path);
  const { etag } = whole.headers;
  check(`${path} is a file of type ${type}`,
    whole.status === 200 && whole.headers['content-type']?.startsWith(type) && etag && !whole.stamp,
    `${whole.status} ${whole.headers['content-type']} ${etag}`);
  const same = await visitor.get(path, { fields: { 'If-None-Match': etag } });
  check(`${path}: who has it gets 304`, same.status === 304 && !same.text, same.status);
  const part = await visitor.get(path, { fields: { Range: 'bytes=10-19' } });
  check(`${path}: a part of it`, part.status === 206 && part.bytes.equals(whole.bytes.subarray(10, 20)), part.status);
  const written = await visitor.ask('PUT', path, { body: 'x' });
  check(`${path}: cannot be written`, written.status === 405, written.status);
}
