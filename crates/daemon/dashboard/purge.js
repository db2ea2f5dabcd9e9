// The purge box.
import { post } from './api.js';
import { answer, byId, confirmed, el, show, text } from './dom.js';
import { count } from './format.js';

const KINDS = [
  { kind: 'url', label: 'URL', example: 'https://example.com/page', hint: 'All stored variants of this one URL.' },
  { kind: 'prefix', label: 'Prefix', example: 'https://example.com/blog/', hint: 'Every URL with this prefix.' },
  { kind: 'tags', label: 'Tag', example: 'product-42', hint: 'Everything that the origin marked with this surrogate key.' },
  { kind: 'host', label: 'Host', example: 'example.com', hint: 'Everything of one host.', ask: true },
  {
    kind: 'ban', label: 'Ban expression', example: 'req.url ~ "^/shop" && obj.age > 1h',
    hint: 'Everything that the expression matches, in Varnish’s language.',
  },
  { kind: 'all', label: 'Everything', hint: 'Every stored response of every site.', ask: true },
];

export class Purge {
  constructor() {
    this.radios = KINDS.map(({ kind, label }, n) => {
      const radio = el('input', { type: 'radio', name: 'purge-kind', value: kind, id: `purge-${kind}` });
      radio.checked = n === 0;
      byId('purge-kinds').append(el('label', { for: `purge-${kind}` }, radio, label));
      return radio;
    });
    byId('purge-kinds').addEventListener('change', () => this.#choose());
    byId('purge-form').addEventListener('submit', (event) => {
      event.preventDefault();
      this.#purge();
    });
    this.#choose();
  }

  allow(role) {
    const may = role !== 'read';
    byId('purge-fields').disabled = !may;
    show(byId('purge-may'), !may);
    text(byId('purge-may'), may ? '' : 'Your token may only look. Purging takes one with the role purge or config.');
  }

  get #kind() {
    return KINDS.find(({ kind }) => kind === this.radios.find((radio) => radio.checked).value);
  }

  #choose() {
    const { label, example, hint, kind } = this.#kind;
    show(byId('purge-value-field'), kind !== 'all');
    byId('purge-value').required = kind !== 'all';
    byId('purge-value').placeholder = example ?? '';
    text(byId('purge-value-label'), label);
    text(byId('purge-hint'), hint);
  }

  async #purge() {
    const { kind, label, ask: asks } = this.#kind;
    const value = byId('purge-value').value.trim();
    const soft = byId('purge-soft').checked;
    const box = byId('purge-answer');
    const what = kind === 'all' ? 'everything' : `${label.toLowerCase()} ${value}`;
    const words = soft ? 'All of it counts as stale: each page is fetched once more when it is asked for.'
      : 'All of it is fetched again when it is asked for: the origins will feel that.';
    if (asks && !await confirmed(`Purge ${what}?`, words, 'Purge')) return;
    answer(box, 'Purging …');
    try {
      const result = await post('/api/v1/purge', { [kind]: kind === 'all' ? true : value, soft });
      const hit = Number(result.purged);
      const told = `${soft ? 'Soft purge' : 'Purge'} of ${what}: ${count(hit)} ${hit === 1 ? 'object' : 'objects'}`;
      answer(box, result.pending ? `${told} so far, the rest is still looked at; none of it is served as fresh` : told);
    } catch (error) {
      answer(box, error.message, true);
    }
  }
}
