// The explain box: what would happen to a request now, step by step, and what happened to those before.
import { post } from './api.js';
import { answer, byId, el } from './dom.js';

export class Explain {
  constructor() {
    byId('explain-form').addEventListener('submit', (event) => {
      event.preventDefault();
      this.#explain();
    });
  }

  // Asks about the URL of a table's row, which has the scheme apart.
  about({ key, url, secure }) {
    byId('explain-method').value = 'GET';
    byId('explain-url').value = `${secure ? 'https' : 'http'}://${key ?? url}`;
    byId('explain').scrollIntoView();
    byId('explain-url').focus({ preventScroll: true });
    this.#explain();
  }

  async #explain() {
    const box = byId('explain-answer');
    const place = byId('explanation');
    const lines = byId('explain-headers').value.split('\n').map((line) => line.trim()).filter(Boolean);
    const client = byId('explain-client').value.trim();
    const request = { method: byId('explain-method').value, url: byId('explain-url').value.trim(), headers: lines };
    if (client) request.client = client;
    try {
      const told = await post('/api/v1/explain', request);
      answer(box, '');
      place.replaceChildren(...explanation(told));
    } catch (error) {
      answer(box, error.message, true);
      place.replaceChildren();
    }
  }
}

function explanation(told) {
  const parts = [
    el('p', { class: 'outcome', role: 'status' },
      el('span', { class: 'served' }, told.outcome.served),
      el('span', { class: 'summary' }, `${told.method} ${told.url} ${told.outcome.summary}.`)),
    steps('Steps', told.steps),
    el('h3', { class: 'past-title' }, 'Before'),
  ];
  if (told.past.length) parts.push(steps('The last requests for this URL', told.past));
  else parts.push(el('p', { class: 'hint' }, told.past_note ? `Not known: ${told.past_note}.` : 'No request for this URL in the log ring.'));
  parts.push(el('h3', { class: 'past-title' }, 'What to do'), ...told.advice.map((one) => el('p', { class: 'advice' }, one)));
  return parts;
}

function steps(label, list) {
  return el('ol', { class: 'steps', 'aria-label': label }, ...list.map((step) => {
    const more = el('div', { class: 'more' });
    if (step.where) more.append(el('div', { class: 'where' }, step.where));
    if (step.facts?.length) {
      more.append(el('dl', { class: 'facts' },
        ...step.facts.flatMap(({ name, value }) => [el('dt', {}, name), el('dd', {}, value)])));
    }
    const decided = step.decided ? el('span', { class: 'unseen' }, ' (decides)') : undefined;
    return el('li', { class: step.decided ? 'decided' : undefined },
      el('div', { class: 'what' }, step.what, decided), el('div', { class: 'why' }, step.why), more);
  }));
}
