// Bad news, above everything else: problems that need an operator now.
import { el, show } from './dom.js';
import { count, duration, moment } from './format.js';

// Days before which authorities' tools have renewed a certificate.
const LATE_DAYS = 7;

// The problems in the figures: a text each.
export function badNews(figures) {
  const origins = new Map();
  for (const server of figures.servers) {
    if (!origins.has(server.origin)) origins.set(server.origin, []);
    origins.get(server.origin).push(server);
  }
  const down = [...origins].filter(([, servers]) => servers.every((server) => server.down_since_ms !== null));
  const ofOrigins = down.map(([name, servers]) => {
    const since = Math.max(...servers.map((server) => server.down_since_ms));
    const latest = servers.filter((server) => server.last_error).sort((a, b) => b.last_error_ms - a.last_error_ms)[0];
    return `Origin ${name} is down since ${moment(since)}${latest ? `: ${latest.last_error}` : ''}.`;
  });
  const late = figures.certificates.filter((one) => one.left_s < LATE_DAYS * 86_400);
  const ofCertificates = late.map(({ certificate, left_s: left }) => (left < 0 ? `Certificate ${certificate} has expired.`
    : `Certificate ${certificate} is good for another ${duration(left)}.`));
  const out = figures.disk.filter((volume) => !volume.is_in);
  const ofVolumes = out.map((volume) => `Disk ${volume.path} is out of use: ${volume.state.replace(/^out of use: /, '')}.`);
  const broken = figures.disk.filter((volume) => volume.is_in && volume.errors > 0);
  const ofErrors = broken.map((volume) => `Disk ${volume.path} had ${count(volume.errors)} errors since the start.`);
  const ofPages = figures.differing.map((page) => `Page ${page.url} differs by ${page.cause}, which the cache ignores (seen at ${moment(page.unix_ms)}).`);
  return [...ofPages, ...ofOrigins, ...ofCertificates, ...ofVolumes, ...ofErrors];
}

export class News {
  constructor(place) {
    this.place = place;
    this.told = '';
  }

  fill(figures) {
    const all = badNews(figures);
    // Screen readers read it again only when it has changed.
    const told = all.join('\n');
    if (told === this.told) return;
    this.told = told;
    show(this.place, all.length > 0);
    this.place.replaceChildren(...all.map((one) => el('p', {}, one)));
  }
}
