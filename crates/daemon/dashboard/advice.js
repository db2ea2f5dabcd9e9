// Advice: what would serve the visitors better, made by the daemon on request.
import { get } from './api.js';
import { answer, byId, el, show, text } from './dom.js';
import { count, percent } from './format.js';

export class Advice {
  constructor() {
    byId('advice-make').addEventListener('click', () => this.#make());
  }

  allow(role) {
    const may = role === 'config';
    byId('advice-make').disabled = !may;
    show(byId('advice-may'), !may);
    text(byId('advice-may'), may ? '' : 'Advice names lines of the configuration. That takes a token with the role config.');
  }

  async #make() {
    const button = byId('advice-make');
    button.disabled = true;
    answer(byId('advice-answer'), 'The last requests are replayed ...');
    try {
      const advice = await get('/api/v1/advice');
      const { requests, replayed, findings } = advice;
      const ratio = `${count(requests)} requests were replayed, with a hit ratio of ${percent(replayed.ratio / 100)}.`;
      answer(byId('advice-answer'), findings.length ? ratio : `${ratio} Nothing was found that should be changed.`);
      byId('advice-list').replaceChildren(...findings.map(shown));
    } catch (error) {
      answer(byId('advice-answer'), error.message, true);
    } finally {
      button.disabled = false;
    }
  }
}

const signed = (points) => `${points < 0 ? '−' : '+'}${Math.abs(points).toFixed(1)} points`;

function shown(finding) {
  const { number, kind, site, about, paths, points, predicted, proof, risk, file, change, hints } = finding;
  const gain = predicted ? `, ${signed(points)}` : '';
  const lines = (change ?? []).map((place) => `${file}:${place.line}\n${place.lines.join('\n')}`);
  const facts = [['Proof', proof.text], ['Risk', risk], ...hints.map((hint) => ['Also', hint])];
  return el('details', { class: 'force' },
    el('summary', {}, el('b', {}, `${number}. ${kind}`), ` ${about}`, ' ',
      el('span', { class: 'quiet' }, `${[site, paths].filter(Boolean).join(', ')}${gain}`)),
    el('dl', { class: 'facts' }, ...facts.flatMap(([name, value]) => [el('dt', {}, name), el('dd', {}, value)])),
    lines.length ? el('pre', { class: 'output', tabindex: '0', 'aria-label': `Lines for ${kind} ${about}` }, lines.join('\n\n')) : undefined);
}
