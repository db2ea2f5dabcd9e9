// Checking and reloading the configuration.
import { post } from './api.js';
import { answer, byId, confirmed, show, text } from './dom.js';

export class Config {
  // `reloaded` is called when another configuration may be in force.
  constructor(reloaded) {
    this.reloaded = reloaded;
    byId('config-check').addEventListener('click', () => this.#run('check', 'The file can be used.'));
    byId('config-reload').addEventListener('click', async () => {
      const words = 'The file is read again and put in force. Requests under way end as they began.';
      if (await confirmed('Reload the configuration?', words, 'Reload')) this.#run('reload', 'Reloaded.');
    });
  }

  allow(role) {
    const may = role === 'config';
    for (const id of ['config-check', 'config-reload']) byId(id).disabled = !may;
    show(byId('config-may'), !may);
    text(byId('config-may'), may ? '' : 'Your token may not change the configuration. That takes one with the role config.');
  }

  async #run(action, good) {
    try {
      const result = await post(`/api/v1/config/${action}`);
      const stays = result.good && result.stays.length > 0;
      const words = stays ? `${good} But a restart is needed for: ${result.stays.join(', ')}.` : good;
      if (action === 'reload') this.reloaded();
      this.#tell(result.good ? words : 'It cannot be used.', !result.good, result.said);
    } catch (error) {
      this.#tell('It was not accepted; the running configuration stays.', true, error.message);
    }
  }

  #tell(words, bad, output) {
    answer(byId('config-answer'), words, bad);
    show(byId('config-output'), Boolean(output));
    text(byId('config-output'), output);
  }
}
