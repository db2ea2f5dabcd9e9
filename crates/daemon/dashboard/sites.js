// Sites: the selection of one, and the configuration in force, as `larder check --show` prints it.
import { get } from './api.js';
import { answer, byId, el, show, text } from './dom.js';
import { count } from './format.js';

const ALL = 'All sites';

// One server, as far as it is configured.
const server = ({ name, weight }) => (weight === 1 ? name : `${name}, weight ${weight}`);

export class Sites {
  // `choose` is called with the name of the site that was chosen, or with nothing for all.
  constructor(choose) {
    this.names = [];
    this.told = '';
    byId('site').addEventListener('change', () => choose(byId('site').value || undefined));
    byId('sites-table').addEventListener('click', (event) => {
      const button = event.target.closest('button[data-action="site"]');
      if (button) choose(button.value === this.site ? undefined : button.value);
    });
  }

  // The selection applies to the whole page.
  chosen(site) {
    this.site = site;
    byId('site').value = site ?? '';
    show(byId('scope-note'), Boolean(site));
    text(byId('traffic-of'), site ? `Traffic of ${site}` : 'Traffic');
  }

  // Reads the configuration in force.
  async load() {
    try {
      const [{ sites }, { origins }] = await Promise.all([get('/api/v1/sites'), get('/api/v1/origins')]);
      answer(byId('in-force-answer'), '');
      this.#offer(sites.map(({ name }) => name));
      this.#tell(sites, origins);
    } catch (error) {
      answer(byId('in-force-answer'), error.message, true);
    }
  }

  #offer(names) {
    if (names.join('\n') !== this.names.join('\n')) {
      this.names = names;
      byId('site').replaceChildren(...['', ...names].map((name) => el('option', { value: name }, name || ALL)));
      byId('site').value = this.site ?? '';
    }
    // With one site there is nothing to choose.
    show(byId('scope'), names.length > 1);
  }

  #tell(sites, origins) {
    const told = JSON.stringify([sites.map(({ rules }) => rules), origins.map(({ name, servers }) => [name, servers.map(server)])]);
    if (told === this.told) return;
    this.told = told;
    const ofSites = sites.map(({ hosts, presets, origins: names, rules }) => {
      const about = [presets.length ? `preset ${presets.join(', ')}` : 'no preset', names.length ? `origin ${names.join(', ')}` : ''];
      return el('details', { class: 'force' },
        el('summary', {}, el('b', {}, hosts.join(', ')), ' ', el('span', { class: 'quiet' }, about.filter(Boolean).join('; '))),
        el('pre', { class: 'output', tabindex: '0', 'aria-label': `Rules of ${hosts[0]}` }, rules.trimEnd()));
    });
    const ofOrigins = origins.map(({ name, servers }) => el('li', {}, el('b', {}, name), ': ', servers.map(server).join('; ')));
    byId('in-force').replaceChildren(...ofSites, ...(ofOrigins.length ? [el('h4', {}, 'Origins'), el('ul', { class: 'plain' }, ...ofOrigins)] : []));
    text(byId('in-force-count'), `${count(sites.length)} site${sites.length === 1 ? '' : 's'}, ${count(origins.length)} origin${origins.length === 1 ? '' : 's'}`);
  }
}
