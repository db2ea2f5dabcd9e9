// The figures: tiles, charts and tables, filled from what the daemon sends every second.
import { Charts } from './charts.js';
import { Cluster } from './cluster.js';
import { byId, el, show, text } from './dom.js';
import { bytes, bytesIn, count, duration, many, moment, percent, rate, time } from './format.js';
import { News } from './news.js';
import { Table, rowOf, twoLines } from './tables.js';

// Rates in tiles are means of so many seconds: a figure that jumps cannot be read.
const CALM_S = 5;

// A figure that one site alone may not have.
const known = (value, words) => (value === undefined ? '' : words(value));

// Tiles: { label, figure(f, mean) as [number, unit], beside(f, mean), alarm?(f, mean), part?(f), shared? }. What is shared
// by sites is not shown of one.
const TILES = [
  {
    label: 'Requests', figure: (f, mean) => [rate(mean('requests')), '/s'],
    beside: (f) => `${rate(f.rates.refused)} refused/s`,
  },
  {
    label: 'Hit ratio', figure: (f, mean) => [percent(ratio(mean)), ''],
    beside: (f, mean) => `${rate(mean('hits'))} hits/s, ${rate(mean('stale'))} stale/s`,
  },
  {
    label: 'Sent', figure: (f, mean) => bytesIn(mean('bytes_out')).map((part, n) => (n ? `${part}/s` : part)),
    beside: (f) => known(f.rates.bytes_in, (received) => `${bytes(received)}/s received`),
  },
  {
    label: 'Origin requests', figure: (f, mean) => [rate(mean('origin_requests')), '/s'],
    beside: (f) => known(f.rates.origin_failures, (failures) => `${rate(failures)} failures/s`),
  },
  {
    label: 'Origins were spared', figure: (f) => [many(f.now.spared_requests), ''],
    beside: (f) => `requests, ${duration(f.now.spared_s)} of work since the start`,
  },
  {
    label: 'Errors (5xx)', figure: (f, mean) => [rate(mean('errors')), '/s'],
    beside: (f, mean) => [`${rate(mean('client_errors'))} 4xx/s`,
      known(f.rates.aborted, (aborted) => `${rate(aborted)} cut off/s`)].filter(Boolean).join(', '),
    alarm: (f, mean) => mean('errors') > 0,
  },
  {
    label: 'Memory', shared: true, figure: (f) => bytesIn(f.now.memory_bytes),
    beside: (f) => `of ${bytes(f.now.memory_budget_bytes)}`,
    part: (f) => f.now.memory_bytes / Math.max(1, f.now.memory_budget_bytes),
  },
  {
    label: 'Objects', shared: true, figure: (f) => [count(f.now.objects), ''],
    beside: (f) => `${rate(f.rates.evictions)} evicted/s`,
  },
  {
    label: 'Connections', shared: true, figure: (f) => [count(f.now.connections), ''],
    beside: (f, mean) => [`${count(f.now.tunnels)} tunnels`, ...handshakes(mean)].join(', '),
  },
];

// Both counts come from the daemon; a mean of ratios would weigh idle seconds like busy ones.
function ratio(mean) {
  const judged = mean('judged');
  return judged > 0 ? mean('from_store') / judged : null;
}

// TLS handshakes, if there are any, and how many of them are of the old version.
function handshakes(mean) {
  const [all, old] = [mean('handshakes'), mean('handshakes_tls12')];
  if (!(all > 0)) return [];
  return [`${rate(all)} TLS/s${old > 0 ? `, ${percent(old / all)} of 1.2` : ''}`];
}

// Senders of such purges mostly ignore the responses.
function lostPurges(times) {
  if (!times) return '';
  return `${count(times)} ${times === 1 ? 'purge' : 'purges'} since the start found no site and purged nothing: no site has `
    + 'the host that they named.';
}

class Tiles {
  constructor(place) {
    this.tiles = TILES.map((tile) => {
      const figure = el('span');
      const unit = el('span', { class: 'unit' });
      const beside = el('dd', { class: 'beside' });
      const meter = tile.part && el('meter', { min: '0', max: '1', 'aria-label': `${tile.label} in use` });
      const box = el('div', { class: 'tile' }, el('dt', {}, tile.label),
        el('dd', { class: 'figure' }, figure, unit), meter && el('dd', {}, meter), beside);
      place.append(box);
      return { ...tile, box, parts: { figure, unit, beside, meter } };
    });
  }

  fill(figures, mean) {
    for (const { box, parts, ...tile } of this.tiles) {
      show(box, !(tile.shared && figures.site));
      const [number, unit] = tile.figure(figures, mean);
      text(parts.figure, number);
      text(parts.unit, unit);
      text(parts.beside, tile.beside(figures, mean));
      if (parts.meter) parts.meter.value = tile.part(figures);
      box.dataset.alarm = Boolean(tile.alarm?.(figures, mean));
    }
  }
}

const number = (title, value, more = {}) => ({ title, value, kind: 'number', ...more });
const hitsOf = (row) => percent(row.hit_ratio);

// The button's accessible name has the URL.
const explainButton = {
  title: 'Why?',
  fill(cell, row) {
    if (!cell.childElementCount) {
      cell.append(el('button', { type: 'button', class: 'small', 'data-action': 'explain' }, 'Explain'));
    }
    const url = row.key ?? row.url;
    show(cell.firstElementChild, Boolean(url));
    cell.firstElementChild.setAttribute('aria-label', `Explain ${url}`);
  },
};

const urlColumn = { title: 'URL', value: (row) => row.key, kind: 'url' };

// Some requests came before counting began, right after opening.
const NO_REQUESTS = 'None counted yet. Requests are counted here while a dashboard is open, and for a minute.';

function urlTable(place, caption, note, first) {
  return new Table(byId(place), {
    caption, note, key: (row) => row.key, nothing: NO_REQUESTS,
    columns: [
      urlColumn, first,
      number('Hits', hitsOf, { minor: true }),
      number('Mean', (row) => time(row.mean_us), { minor: true }),
      explainButton,
    ],
  });
}

// Reasons for which answers are not stored, and the URLs of the one that was chosen.
class NotCached {
  constructor() {
    this.reasons = new Table(byId('reasons-table'), {
      label: 'Not cached, by reason', key: (row) => row.reason, nothing: 'No uncached response lately.',
      columns: [
        { title: 'Reason', kind: 'words', fill: (cell, row) => twoLines(cell, row.about, row.rule) },
        number('Share', (row) => percent(row.share)),
        number('Requests/s', (row) => rate(row.requests)),
        { title: 'Which?', fill: (cell, row) => this.#button(cell, row) },
      ],
    });
    this.urls = urlTable('reason-urls-table', 'Its URLs', 'most requests first', number('Requests/s', (row) => rate(row.requests)));
    byId('reasons-table').addEventListener('click', (event) => {
      if (event.target.closest('button')) this.#choose(rowOf(event.target).reason);
    });
  }

  #button(cell, row) {
    if (!cell.childElementCount) cell.append(el('button', { type: 'button', class: 'small' }, 'URLs'));
    cell.firstElementChild.setAttribute('aria-label', `URLs: ${row.about}`);
    cell.firstElementChild.setAttribute('aria-pressed', String(row.reason === this.chosen));
  }

  #choose(reason) {
    this.chosen = this.chosen === reason ? undefined : reason;
    this.fill(this.rows);
  }

  fill(rows) {
    this.rows = rows;
    this.reasons.fill(rows);
    const chosen = rows.find((row) => row.reason === this.chosen);
    show(byId('reason-urls'), Boolean(this.chosen));
    this.urls.fill(chosen ? chosen.urls : []);
  }
}

function reason(row) {
  if (row.limit) return [`limit ${row.limit}`, row.error];
  return [row.error || `status ${row.status}`, row.server && `origin ${row.server}`];
}

function errorsTable() {
  return new Table(byId('errors-table'), {
    label: 'Errors', key: (row) => `${row.status} ${row.url} ${row.error} ${row.limit}`,
    nothing: 'No failed request in the log ring.',
    columns: [
      { title: 'URL', kind: 'url', fill: (cell, row) => twoLines(cell, `${row.method} ${row.url}`.trim() || 'not readable', '') },
      number('Status', (row) => row.status),
      { title: 'Reason', kind: 'words', fill: (cell, row) => twoLines(cell, ...reason(row)) },
      number('Times', (row) => count(row.count)),
      number('Last', (row) => moment(row.time_ms)),
      { title: 'Served', value: (row) => row.served, minor: true },
      {
        title: 'Client', kind: 'words', minor: true,
        fill: (cell, row) => twoLines(cell, row.client || 'unix socket', row.agent),
      },
      explainButton,
    ],
  });
}

// What is on disk, of what may be; the rest is free, or waits to be used again.
const fullness = (row) => [bytes(row.live_bytes), `of ${bytes(row.bytes)}`];

// Memory for knowing what is there, beside the budget.
const diskIndex = (now) => `index ${bytes(now.disk_index_bytes)} of ${bytes(now.disk_index_max_bytes)}${
  now.disk_index_short > 0 ? ': full, so what is worth least leaves the disk (limit disk_index_bytes)' : ''}`;

function diskTable() {
  return new Table(byId('disk-table'), {
    label: 'Disk', key: (row) => row.path, nothing: 'No volume.',
    columns: [
      { title: 'Volume', kind: 'words', fill: (cell, row) => twoLines(cell, row.path, row.is_in ? '' : row.state) },
      number('Objects', (row) => count(row.records)),
      { title: 'Stored', kind: 'number', fill: (cell, row) => twoLines(cell, ...fullness(row)) },
      number('Reads/s', (row) => rate(row.rates.reads)),
      number('Bytes read/s', (row) => bytes(row.rates.read_bytes), { minor: true }),
      number('Bytes written/s', (row) => bytes(row.rates.written_bytes)),
      number('Waits', (row) => bytes(row.queued_bytes), { minor: true }),
      number('Damaged', (row) => count(row.damaged)),
      number('Errors', (row) => count(row.errors)),
    ],
  });
}

// How far a campaign is, and how long it will take.
function progress(row) {
  const done = row.fetched + row.fresh + row.unstored + row.failed + row.dropped;
  const left = row.left_ms === null ? '' : `${duration(row.left_ms / 1000)} left`;
  const state = row.stopped ? 'stopped' : row.over ? `took ${duration(row.took_ms / 1000)}` : left;
  return [`${count(done)} of ${count(row.found)}`, state];
}

function warmthTable() {
  return new Table(byId('warmth-table'), {
    label: 'Warming', key: (row) => row.number, nothing: 'Nothing was warmed.',
    columns: [
      { title: 'Campaign', kind: 'words', fill: (cell, row) => twoLines(cell, row.title, row.faults[0]) },
      { title: 'URLs', kind: 'number', fill: (cell, row) => twoLines(cell, ...progress(row)) },
      number('Fetched', (row) => count(row.fetched)),
      number('Fresh already', (row) => count(row.fresh), { minor: true }),
      number('Not stored', (row) => count(row.unstored)),
      number('Failed', (row) => count(row.failed)),
      number('Dropped', (row) => count(row.dropped), { minor: true }),
    ],
  });
}

// Days in which a certificate needs attention: authorities' tools renew theirs a month before.
const SOON_DAYS = 14;

function validity(cell, row) {
  const days = Math.floor(row.left_s / 86_400);
  twoLines(cell, row.left_s < 0 ? 'expired' : days < 1 ? 'less than a day' : `${count(days)} day${days === 1 ? '' : 's'}`, '');
  cell.className = `health ${row.left_s < 0 ? 'bad' : days < SOON_DAYS ? 'warn' : 'good'}`;
}

function certificatesTable() {
  return new Table(byId('certificates-table'), {
    label: 'Certificates', key: (row) => `${row.site} ${row.certificate}`, nothing: 'No certificate.',
    columns: [
      { title: 'Certificate', kind: 'words', value: (row) => row.certificate },
      { title: 'Site', kind: 'words', value: (row) => row.site || 'all' },
      { title: 'Good for', fill: validity },
    ],
  });
}

// Shows one site only, or all again.
function onlyButton(cell, row, chosen) {
  if (!cell.childElementCount) {
    cell.append(el('button', { type: 'button', class: 'small', 'data-action': 'site', value: row.site }, 'Only this'));
  }
  cell.firstElementChild.setAttribute('aria-label', `Only this: ${row.site}`);
  cell.firstElementChild.setAttribute('aria-pressed', String(row.site === chosen));
}

function otherTables(chosen) {
  return {
    sites: new Table(byId('sites-table'), {
      label: 'Sites', key: (row) => row.site, nothing: 'No requests yet.',
      columns: [
        { title: 'Site', value: (row) => row.site, kind: 'words' },
        number('Requests/s', (row) => rate(row.requests)),
        number('Hits', hitsOf),
        number('Errors/s', (row) => rate(row.errors)),
        number('Sent/s', (row) => bytes(row.bytes), { minor: true }),
        number('Total', (row) => count(row.requests_total), { minor: true }),
        { title: 'Only this?', fill: (cell, row) => onlyButton(cell, row, chosen()) },
      ],
    }),
    classes: new Table(byId('classes-table'), {
      label: 'Clients by class', key: (row) => row.class, nothing: 'No requests yet.',
      columns: [
        { title: 'Class', value: (row) => row.class, kind: 'words' },
        number('Requests/s', (row) => rate(row.requests)),
        number('Hits/s', (row) => rate(row.hits)),
        number('Fetches/s', (row) => rate(row.fetches)),
        number('Total', (row) => count(row.requests_total), { minor: true }),
      ],
    }),
    limits: new Table(byId('limits-table'), {
      label: 'Limits reached', key: (row) => row.limit, nothing: 'None since the start.',
      columns: [
        { title: 'Limit', kind: 'words', fill: (cell, row) => twoLines(cell, row.limit, row.about) },
        number('Times', (row) => count(row.hits)),
        number('Per second', (row) => rate(row.rate), { minor: true }),
      ],
    }),
    clients: new Table(byId('clients-table'), {
      label: 'Clients', key: (row) => row.key, nothing: NO_REQUESTS,
      columns: [
        { title: 'Client', value: (row) => row.key, kind: 'words' },
        number('Requests/s', (row) => rate(row.requests)),
        number('Hits', hitsOf),
        number('Errors/s', (row) => rate(row.errors), { minor: true }),
        number('Sent/s', (row) => bytes(row.bytes)),
      ],
    }),
  };
}

export class Board {
  constructor() {
    this.tiles = new Tiles(byId('tiles'));
    this.charts = new Charts(byId('charts'));
    this.cluster = new Cluster();
    this.news = new News(byId('news'));
    this.notCached = new NotCached();
    this.tables = {
      misses: urlTable('misses-table', 'Most misses', 'that waited for an origin',
        number('Misses/s', (row) => rate(row.waited))),
      time: urlTable('time-table', 'Most time', 'of all requests together',
        number('Time per second', (row) => time(row.time_us))),
      errors: errorsTable(),
      disk: diskTable(),
      warmth: warmthTable(),
      certificates: certificatesTable(),
      ...otherTables(() => this.site),
    };
    this.paused = false;
  }

  // Call once it is visible.
  draw() {
    this.charts.draw();
  }

  start(history) {
    this.charts.start(history);
  }

  fill(figures) {
    this.charts.add(figures, !this.paused);
    if (this.paused) return;
    const mean = (name) => this.charts.history.mean(name, CALM_S);
    this.tiles.fill(figures, mean);
    text(byId('purges-lost'), lostPurges(figures.now.purges_lost));
    text(byId('about'), `${this.version} on ${this.host}, up ${duration(figures.uptime_s)}`);
    this.news.fill(figures);
    this.tables.sites.fill(figures.sites);
    this.tables.limits.fill(figures.limits);
    this.tables.classes.fill(figures.classes);
    show(byId('classes'), figures.classes.length > 0 && !figures.site);
    this.cluster.fill(figures.site ? null : figures.cluster);
    this.tables.disk.fill(figures.disk);
    this.tables.warmth.fill(figures.warmth);
    show(byId('warmth'), figures.warmth.length > 0 && !figures.site);
    const { site } = figures;
    const certificates = figures.certificates.filter((row) => !site || !row.site || row.site === site.name);
    this.tables.certificates.fill(certificates);
    show(byId('certificates'), certificates.length > 0);
    for (const element of document.querySelectorAll('.of-all')) show(element, !site);
    for (const element of document.querySelectorAll('.with-disk')) show(element, figures.disk.length > 0 && !site);
    show(byId('disk-finding'), figures.now.disk_finding > 0);
    text(byId('disk-index'), diskIndex(figures.now));
    const { ring } = figures;
    for (const element of document.querySelectorAll('.with-ring')) show(element, Boolean(ring));
    for (const element of document.querySelectorAll('.needs-ring')) show(element, !ring);
    if (!ring) return;
    this.notCached.fill(ring.not_cached);
    this.tables.misses.fill(ring.urls_by_misses);
    this.tables.time.fill(ring.urls_by_time);
    this.tables.errors.fill(ring.errors);
    text(byId('left'), ring.left > 0 ? `and ${count(ring.left)} that visitors did not wait for (499)` : '');
    this.tables.clients.fill(ring.clients);
  }
}
