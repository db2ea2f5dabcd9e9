// What the clients have in common that are programs: running them, reading what they print.
import crypto from 'node:crypto';
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';

export const SECURE = new URL(process.env.LAB_URL);
export const PLAIN = new URL(process.env.LAB_HTTP);
export const ROOT = process.env.LAB_ROOT;
const work = fs.mkdtempSync(path.join(process.env.LAB_WORK, 'client.'));
let files = 0;

// The name of a new file, with this content if there is any.
export function file(content) {
  files += 1;
  const name = path.join(work, String(files));
  if (content !== undefined) fs.writeFileSync(name, content);
  return name;
}

export const sha256 = (bytes) => crypto.createHash('sha256').update(bytes).digest('hex');

// Runs a program to its end, a minute at most. Rejects when it cannot be started, not when it fails.
export function run(program, args) {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'], timeout: 60_000, killSignal: 'SIGKILL' });
    const out = [];
    const err = [];
    child.stdout.on('data', (piece) => out.push(piece));
    child.stderr.on('data', (piece) => err.push(piece));
    child.on('error', reject);
    child.on('close', (code) => {
      const bytes = Buffer.concat(out);
      resolve({ code, bytes, text: bytes.toString(), errors: Buffer.concat(err).toString() });
    });
  });
}

// Whether `answer` has the body that the origin says it has.
export function isWhole(answer, length) {
  return answer.status === 200 && answer.body.length === length && sha256(answer.body) === answer.fields['x-sha256'];
}

export function isHit(answer, earlier) {
  return /;\s*hit\b/.test(answer.fields['cache-status'] ?? '')
    && answer.fields['x-origin-request'] === earlier.fields['x-origin-request'];
}
