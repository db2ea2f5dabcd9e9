// The cluster as this node sees it: its trust in stored responses, and the state of its peers.
import { byId, show, text } from './dom.js';
import { count, duration, percent } from './format.js';
import { Table, twoLines } from './tables.js';

// The meaning of a node's state, and its colour.
const STATES = {
  ready: ['', 'good'],
  asks: ['validates stored responses before use', 'warn'],
  draining: ['wants no more clients', 'warn'],
  left: ['no purge waits for it', ''],
  gone: ['silent: no purge waits for it', 'bad'],
};

const number = (title, value, more = {}) => ({ title, value, kind: 'number', ...more });

// This node in short: its name, its trust, its order, its position on the stream.
function own({ name, stance, trusted, sequence, last, queued, nodes, members, configuration }) {
  const words = [name];
  if (trusted) words.push('trusts its stored responses');
  if (stance === 'draining') words.push('draining');
  if (stance === 'left') words.push('has left');
  words.push(`applied ${count(sequence)} of ${count(last)}`);
  if (queued > 0) words.push(`${count(queued)} wait to be published`);
  if (configuration) words.push(shared(configuration));
  if (members.length < nodes) words.push(`${count(members.length)} of ${count(nodes)} nodes`);
  return words.join(', ');
}

// The shared configuration, and the stage of the last roll-out.
function shared({ in_force, version, stage }) {
  const here = in_force ? `configuration ${in_force}` : 'no shared configuration yet';
  if (stage === 'canary') return `${here} (${version} is on its canaries)`;
  if (stage === 'failed') return `${here} (${version} has failed)`;
  return here;
}

function trouble({ connected, trusted, problem, configuration }) {
  const words = [];
  if (!connected) words.push(problem ? `Out of touch: ${problem}.` : 'Out of touch.');
  if (!trusted) words.push('Stored responses are validated before use.');
  if (configuration?.fault) words.push(`A configuration is not applied: ${configuration.fault}`);
  return words.join(' ');
}

export class Cluster {
  constructor() {
    this.table = new Table(byId('cluster-table'), {
      label: 'Nodes', key: (row) => row.name, nothing: 'No node is known yet.',
      columns: [
        { title: 'Node', kind: 'words name', fill: (cell, row) => twoLines(cell, row.name, row.version) },
        {
          title: 'State',
          fill: (cell, row) => {
            const [meaning, colour] = STATES[row.state] ?? ['', ''];
            twoLines(cell, row.state, meaning);
            cell.className = `health ${colour}`;
          },
        },
        number('Lag', (row) => count(row.lag)),
        number('Silent', (row) => duration(Math.floor(row.silent_ms / 1000))),
        number('Objects', (row) => count(row.objects), { minor: true }),
        number('Hits', (row) => percent(row.judged > 0 ? row.hits / row.judged : null)),
      ],
    });
  }

  // `status` is null where there is no cluster.
  fill(status) {
    for (const element of document.querySelectorAll('.with-cluster')) show(element, Boolean(status));
    if (!status) return;
    text(byId('cluster-own'), own(status));
    text(byId('cluster-trouble'), trouble(status));
    this.table.fill(status.members);
  }
}
