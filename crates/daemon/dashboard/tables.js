// Tables that are filled again every second.
//
// A row keeps its element while its key is there. While the pointer is over a table or the focus is in it with
// the keyboard, rows keep their places and only their figures move: a button must not change under a finger.
import { el, show, text } from './dom.js';

// Touch screens still report hover after the finger is gone.
const points = matchMedia('(hover: hover)');

export class Table {
  #rows = new Map();
  #held = false;

  // `columns`: { title, value(row), kind?, minor?, fill?(cell, row) }; the first one is the row's header.
  constructor(place, { caption, note, label, columns, key, nothing }) {
    this.columns = columns;
    this.key = key;
    const heads = columns.map((column) => el('th', { scope: 'col', class: this.#kind(column) }, column.title));
    this.body = el('tbody');
    const table = el('table', label ? { 'aria-label': label } : {}, el('thead', {}, el('tr', {}, ...heads)), this.body);
    this.note = el('span', { class: 'quiet' }, note ?? '');
    if (caption) table.prepend(el('caption', {}, caption, ' ', this.note));
    this.standing = note ?? '';
    this.empty = el('p', { class: 'nothing' }, nothing);
    this.scroll = el('div', { class: 'scroll', role: 'region', tabindex: '0', 'aria-label': `${caption ?? label}, table` }, table);
    place.append(this.scroll, this.empty);
  }

  #kind(column) {
    return [column.kind, column.minor ? 'minor' : ''].filter(Boolean).join(' ') || undefined;
  }

  fill(rows) {
    const active = document.activeElement;
    const pointed = points.matches && this.body.matches(':hover');
    const held = this.#rows.size > 0 && (pointed || this.body.contains(active));
    const keyed = new Map(rows.map((row) => [this.key(row), row]));
    if (held) {
      for (const [key, element] of this.#rows) if (keyed.has(key)) this.#write(element, keyed.get(key));
    } else {
      for (const [key, element] of this.#rows) {
        if (keyed.has(key)) continue;
        element.remove();
        this.#rows.delete(key);
      }
      let at = this.body.firstElementChild;
      for (const [key, row] of keyed) {
        let element = this.#rows.get(key);
        if (!element) {
          element = this.#row();
          this.#rows.set(key, element);
        }
        this.#write(element, row);
        if (element === at) at = at.nextElementSibling;
        else this.body.insertBefore(element, at);
      }
    }
    if (held !== this.#held) {
      this.#held = held;
      text(this.note, held ? 'order held while you are in it' : this.standing);
    }
    show(this.scroll, this.#rows.size > 0);
    show(this.empty, this.#rows.size === 0);
  }

  #row() {
    const cells = this.columns.map((column, n) => (n === 0
      ? el('th', { scope: 'row', class: this.#kind(column) })
      : el('td', { class: this.#kind(column) })));
    return el('tr', {}, ...cells);
  }

  #write(element, row) {
    element.larderRow = row;
    this.columns.forEach((column, n) => {
      const cell = element.children[n];
      if (column.fill) column.fill(cell, row);
      else text(cell, column.value(row));
    });
  }
}

// The data of the row that contains `element`.
export const rowOf = (element) => element.closest('tr')?.larderRow;

// A text and a quieter one below it.
export function twoLines(cell, first, second) {
  if (cell.childElementCount !== 2) cell.replaceChildren(el('span'), el('span', { class: 'below' }));
  const [above, below] = cell.children;
  text(above, first);
  text(below, second ?? '');
  show(below, Boolean(second));
}
