// Origins: the state of each server, and the operator's orders for it.
import { post } from './api.js';
import { answer, byId, confirmed, el, text } from './dom.js';
import { count, moment, rate, time } from './format.js';
import { Table, rowOf, twoLines } from './tables.js';

// The operator's orders, with their meaning for the button's name.
const BY_HAND = [
  ['drain', 'Drain', 'finish what is under way, give it no more'],
  ['down', 'Down', 'treat as failed'],
  ['up', 'Up', 'treat as healthy, whatever probes say'],
  ['auto', 'Auto', 'as probes and failures say'],
];

// Seconds of which the time until answers is the mean.
const MEAN_S = 30;

// The state of a server, the reason, and the colour.
function health(row) {
  if (row.order !== 'auto') {
    return { drain: ['draining', 'by hand', 'warn'], down: ['down', 'by hand', 'bad'], up: ['up', 'by hand', 'good'] }[
      row.order];
  }
  if (row.healthy) return row.probed === 'healthy' ? ['up', 'probes are good', 'good'] : ['up', '', 'good'];
  if (row.ejected_ms > 0) return ['ejected', `for ${Math.ceil(row.ejected_ms / 1000)} s more`, 'bad'];
  return ['down', row.probed === 'sick' ? 'probes fail' : '', 'bad'];
}

export class Origins {
  constructor() {
    this.mayChange = false;
    // What each server had answered before, the oldest first.
    this.before = new Map();
    const columns = [
      { title: 'Server', kind: 'words name', fill: (cell, row) => twoLines(cell, row.name, row.backup ? `${row.origin}, backup` : row.origin) },
      {
        title: 'Health',
        fill: (cell, row) => {
          const [word, why, colour] = health(row);
          twoLines(cell, word, why);
          cell.className = `health ${colour}`;
        },
      },
      { title: 'Requests/s', kind: 'number', value: (row) => rate(row.rates.requests) },
      { title: 'Failures/s', kind: 'number', value: (row) => rate(row.rates.failures) },
      { title: 'Under way', kind: 'number', value: (row) => count(row.in_flight) },
      { title: 'Waiting', kind: 'number', value: (row) => count(row.waiting), minor: true },
      { title: 'Answers after', kind: 'number', value: (row) => time(this.#answersAfter(row)), minor: true },
      {
        title: 'Last failure', kind: 'words', minor: true,
        fill: (cell, row) => twoLines(cell, row.last_error ?? '–', row.last_error && moment(row.last_error_ms)),
      },
      { title: 'Override', fill: (cell, row) => this.#buttons(cell, row) },
    ];
    this.table = new Table(byId('origins-table'), {
      label: 'Origins', key: (row) => `${row.origin} ${row.name}`, nothing: 'No origins.', columns,
    });
    byId('origins-table').addEventListener('click', (event) => {
      const button = event.target.closest('button');
      if (button) this.#set(rowOf(button), button.dataset.action);
    });
  }

  // Microseconds until a server's answers begin, in the mean of the last seconds; null without any.
  #answersAfter(row) {
    const [first] = this.before.get(this.table.key(row)) ?? [];
    const answers = first ? row.answers - first.answers : 0;
    return answers > 0 ? (row.answers_us - first.answers_us) / answers : null;
  }

  #note(row) {
    const key = this.table.key(row);
    const rows = this.before.get(key) ?? [];
    // A restarted daemon counts from zero.
    if (rows.at(-1)?.answers > row.answers) rows.length = 0;
    rows.push(row);
    if (rows.length > MEAN_S) rows.shift();
    this.before.set(key, rows);
  }

  allow(role) {
    this.mayChange = role === 'config';
  }

  #buttons(cell, row) {
    if (!this.mayChange) {
      text(cell, row.order !== 'auto' ? row.order : '–');
      return;
    }
    if (!cell.querySelector('button')) {
      cell.replaceChildren(el('div', { class: 'buttons tight' }, ...BY_HAND.map(([action, word, meaning]) => el('button', {
        type: 'button', class: 'small', 'data-action': action, title: meaning, 'aria-label': `${word} ${row.name}: ${meaning}`,
      }, word))));
    }
    for (const button of cell.querySelectorAll('button')) {
      button.setAttribute('aria-pressed', String(button.dataset.action === row.order));
    }
  }

  async #set(row, action) {
    const takes = action === 'down' || action === 'drain';
    const last = takes && this.rows.filter((other) => other.origin === row.origin && other.healthy).length <= 1;
    const words = `${row.name} is the last healthy server of ${row.origin}. Without it, nothing new is fetched from there.`;
    if (last && row.healthy && !await confirmed('Take out the last server?', words, 'Take it out')) return;
    try {
      await post('/api/v1/origins/order', { origin: row.origin, server: row.name, order: action });
      answer(byId('origins-answer'), `${row.name}: ${action}`);
    } catch (error) {
      answer(byId('origins-answer'), error.message, true);
    }
  }

  fill(rows) {
    this.rows = rows;
    this.table.fill(rows);
    rows.forEach((row) => this.#note(row));
  }
}
