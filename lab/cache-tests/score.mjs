// Counts a result of http-cache-tests, dependencies honoured, and holds it against a committed one.
// usage: node score.mjs RESULTS.json... [--against TABLE.json] [--write TABLE.json]
// With several results of the same proxy, a test counts as its best run: the suite's waits are a few
// seconds long, and a loaded machine oversleeps them. What only some runs passed is listed as unsteady.
import { readFileSync, writeFileSync } from 'node:fs'
import suites from 'http-cache-tests/tests/index.mjs'
import surrogate from 'http-cache-tests/tests/surrogate-control.mjs'

// The suite's command line adds Surrogate-Control to the list in the same way.
const tests = new Map([...suites, surrogate]
  .flatMap(suite => suite.tests.map(test => [test.id, { kind: 'required', ...test, suite: suite.id }]))
  .filter(([, test]) => !test.browser_only))

const GOOD = ['pass', 'yes']

// Tests of the npm release that want what RFC 9111 5.1 advises against. They follow an older draft, which had
// a response stale whose Age is invalid; the RFC has a cache ignore such a value and take the first member of
// a list, and so do the suite's current sources. These are held to the opposite: one that passes is a failure.
const AGE = 'RFC 9111 5.1: the first member of a list counts, an invalid Age is ignored'
const SUPERSEDED = new Set(['nonnumeric', 'negative', 'float', 'parameter', 'numeric-parameter', 'dup-0',
  'dup-0-twoline', 'dup-old', 'prefix-twoline'].map(name => `age-parse-${name}`))

// Why a test counts as it does: the suite's own rules (lib/display.mjs), its time-outs told apart.
export function status (id, results) {
  const test = tests.get(id)
  const result = results[id]
  if (!test || result === undefined) return 'untested'
  if ((test.depends_on ?? []).some(other => !GOOD.includes(status(other, results)))) return 'dependency_fail'
  if (result[0] === 'Setup') return result[1] === 'retry' ? 'retry' : 'setup_fail'
  if (result[0] === 'AbortError') return 'harness_fail'
  if (SUPERSEDED.has(id)) return result === true ? 'fail' : 'superseded'
  const [good, bad] = { required: ['pass', 'fail'], optimal: ['pass', 'optional_fail'], check: ['yes', 'no'] }[test.kind]
  return result === true ? good : bad
}

function tally (statuses) {
  const of = (kind, wanted) => [...tests].filter(([id, test]) => test.kind === kind && wanted.includes(statuses[id])).length
  const all = kind => [...tests].filter(([id, test]) => test.kind === kind && !SUPERSEDED.has(id)).length
  return {
    required: of('required', GOOD),
    required_of: all('required'),
    optimal: of('optimal', GOOD),
    optimal_of: all('optimal'),
    checks: of('check', GOOD),
    checks_of: all('check'),
    superseded: SUPERSEDED.size,
    harness_failures: Object.values(statuses).filter(status => status === 'harness_fail').length
  }
}

const NUMBERS = ['untested', 'harness_fail', 'retry', 'setup_fail', 'dependency_fail', 'fail', 'optional_fail', 'no', 'yes', 'superseded', 'pass']
const RIGHT = [...GOOD, 'superseded']
const better = (one, other) => NUMBERS.indexOf(one) >= NUMBERS.indexOf(other) ? one : other

function main (args) {
  const option = name => args.includes(name) ? args.splice(args.indexOf(name), 2)[1] : undefined
  const against = option('--against')
  const write = option('--write')
  const runs = args.map(file => JSON.parse(readFileSync(file, 'utf8')))
  if (runs.length === 0) throw new Error('usage: score.mjs RESULTS.json... [--against TABLE.json] [--write TABLE.json]')

  const byRun = runs.map(results => Object.fromEntries([...tests.keys()].map(id => [id, status(id, results)])))
  const statuses = Object.fromEntries([...tests.keys()].sort().map(id => [id, byRun.map(run => run[id]).reduce(better)]))
  const summary = tally(statuses)

  for (const kind of ['required', 'optimal']) {
    const failing = Object.keys(statuses).filter(id => tests.get(id).kind === kind && !RIGHT.includes(statuses[id]))
    if (failing.length) console.log(`${kind}, not passed:`)
    for (const id of failing) {
      const result = runs[0][id]
      const why = Array.isArray(result) ? result.join(': ') : 'passed, but a test it depends on did not'
      console.log(`  ${tests.get(id).suite} ${id}: ${statuses[id]} (${result === undefined ? 'not run' : why})`)
    }
  }
  const unsteady = Object.keys(statuses).filter(id => byRun.some(run => run[id] !== statuses[id]))
  if (unsteady.length) console.log(`unsteady: ${unsteady.join(' ')}`)
  const superseded = [...SUPERSEDED].filter(id => statuses[id] === 'superseded')
  console.log(`superseded ${superseded.length} of ${SUPERSEDED.size}, not counted (${AGE}): ${superseded.join(' ')}`)
  console.log(`required ${summary.required} of ${summary.required_of}, optimal ${summary.optimal} of ${summary.optimal_of}, ` +
    `checks ${summary.checks} of ${summary.checks_of}, harness failures ${summary.harness_failures}`)

  if (write) writeFileSync(write, JSON.stringify({ summary, tests: statuses }, null, 1) + '\n')
  if (against) {
    const table = JSON.parse(readFileSync(against, 'utf8')).tests
    const lost = Object.keys(table).filter(id => RIGHT.includes(table[id]) && tests.get(id)?.kind !== 'check' && !RIGHT.includes(statuses[id]))
    const moved = Object.keys(table).filter(id => tests.get(id)?.kind === 'check' && statuses[id] !== table[id])
    const won = Object.keys(statuses).filter(id => RIGHT.includes(statuses[id]) && tests.get(id).kind !== 'check' && !RIGHT.includes(table[id]))
    if (won.length) console.log(`better than the table (renew it with --write): ${won.join(' ')}`)
    if (moved.length) console.log(`checks that answer otherwise than in the table: ${moved.join(' ')}`)
    if (lost.length) {
      console.log(`WORSE than the table: ${lost.join(' ')}`)
      process.exitCode = 1
    } else {
      console.log('no regression')
    }
  }
}

main(process.argv.slice(2))
