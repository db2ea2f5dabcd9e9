// Numbers as people read them, each with its unit.

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const one = new Intl.NumberFormat('en', { minimumFractionDigits: 1, maximumFractionDigits: 1 });

export const count = (number) => whole.format(number);

// A rate: small ones with a decimal, large ones short.
export function rate(number) {
  if (number <= 0) return '0';
  if (number < 0.05) return '<0.1';
  if (number < 9.95) return one.format(number);
  if (number < 99_950) return whole.format(number);
  if (number < 999_500) return `${whole.format(number / 1e3)} k`;
  return `${one.format(number / 1e6)} M`;
}

// A number of things, large ones short.
export const many = (number) => (number < 99_950 ? count(number) : rate(number));

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];

// Bytes as a number and its unit.
export function bytesIn(number) {
  let value = number;
  let unit = 0;
  while (value >= 999.5 && unit + 1 < UNITS.length) {
    value /= 1024;
    unit += 1;
  }
  return [unit > 0 && value < 99.95 ? one.format(value) : whole.format(value), UNITS[unit]];
}

export const bytes = (number) => bytesIn(number).join(' ');

// Microseconds.
export function time(us) {
  if (us === null || us === undefined) return '–';
  if (us < 999.5) return `${whole.format(us)} µs`;
  if (us < 99_950) return `${one.format(us / 1e3)} ms`;
  if (us < 999_500) return `${whole.format(us / 1e3)} ms`;
  return `${(us / 1e6).toFixed(2)} s`;
}

// A part of a whole, from 0 to 1.
export function percent(part) {
  if (part === null || !Number.isFinite(part)) return '–';
  // A share just below 1 is not rounded to 100 %.
  if (part < 1 && part > 0.9995) return '>99.9 %';
  return `${one.format(part * 100)} %`;
}

export function duration(seconds) {
  const [days, hours] = [Math.floor(seconds / 86_400), Math.floor(seconds / 3600) % 24];
  const minutes = Math.floor(seconds / 60) % 60;
  if (days) return `${days} d ${hours} h`;
  if (hours) return `${hours} h ${minutes} min`;
  return minutes ? `${minutes} min` : `${Math.floor(seconds)} s`;
}

// A round time as people say it: `6 hours`.
export function span(seconds) {
  const [size, word] = [[86_400, 'day'], [3_600, 'hour'], [60, 'minute']].find(([size]) => seconds % size === 0) ?? [1, 'second'];
  return `${seconds / size} ${word}${seconds === size ? '' : 's'}`;
}

const clockTime = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' });
const dayTime = new Intl.DateTimeFormat('en-GB', {
  day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit',
});

// A moment in the reader's time zone; the day too when it was not today.
export function moment(ms) {
  const then = new Date(ms);
  const today = then.toDateString() === new Date().toDateString();
  return (today ? clockTime : dayTime).format(then);
}
