// Commands and settings as README and guide have them: whoever follows a page types these.
import fs from 'node:fs';
import path from 'node:path';

const tree = path.join(import.meta.dirname, '../..');

export class Page {
  constructor(name) {
    this.name = name;
    this.text = fs.readFileSync(path.join(tree, name), 'utf8');
    this.blocks = [...this.text.matchAll(/^( *)```(\w+)\n([^]*?)^ *```$/gm)].map(([, indent, kind, body]) => ({
      kind, body: body.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
    }));
  }

  // The block of this kind that has these words.
  block(kind, words) {
    const found = this.blocks.filter((block) => block.kind === kind && block.body.includes(words));
    if (found.length === 0) throw new Error(`${this.name} has no ${kind} with ${words}`);
    return found[0].body;
  }

  // The commands of that block, without `sudo`, which root in a small system does not have; with what is said to come of them.
  commands(kind, words) {
    const commands = [];
    for (const line of this.block(kind, words).replaceAll(/ *\\\n */g, ' ').split('\n')) {
      const command = kind === 'console' ? /^\$ (.*)/.exec(line)?.[1] : line;
      if (command) commands.push({ command: command.replace(/\s+#.*$/, '').replaceAll(/(^|&& )sudo /g, '$1'), output: '' });
      else if (kind === 'console' && commands.length) commands.at(-1).output += `${line}\n`;
    }
    return commands;
  }

  command(kind, words) {
    return this.commands(kind, words).find(({ command }) => command.includes(words)).command;
  }

  // What a pattern finds in the page's sentences.
  said(pattern) {
    const found = pattern.exec(this.text);
    if (!found) throw new Error(`${this.name} does not say ${pattern}`);
    return found.slice(1);
  }
}
