// The list of checks of one lab: what held and what did not.
const rows = [];

export function check(what, good, got = '') {
  rows.push({ what, good: Boolean(good), got: String(got) });
  console.log(`${good ? 'ok    ' : 'FAILED'}  ${what}${got === '' ? '' : `  [${got}]`}`);
}

// What to do when a part could not be ended.
export const afterTrouble = [];

// Runs one part; its failure does not hide the others' results.
export async function part(name, run) {
  console.log(`-- ${name}`);
  try {
    await run();
  } catch (error) {
    check(`${name}: runs to its end`, false, String(error.stack ?? error).split('\n').slice(0, 6).join(' | '));
    for (const action of afterTrouble) await action(name);
  }
}

// Prints the sum and sets the exit code.
export function sum(title) {
  const failed = rows.filter((row) => !row.good);
  for (const row of failed) console.log(`FAILED  ${row.what}  [${row.got}]`);
  console.log(`${title}: ${rows.length - failed.length} of ${rows.length} checks hold`);
  process.exitCode = failed.length ? 1 : 0;
}
