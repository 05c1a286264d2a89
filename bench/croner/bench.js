// node bench.js CRON_BENCH [SHAPE...]: the shapes of bench/cron_bench.cpp, each in three rounds of engine, croner 7 and
// croner 11 by turns, each in a process of its own. Prints evaluations per second of CPU, and ratios within a round.
//
// Both sides walk: the next occurrence after the one before, expression parsed and zone known, from the start again where
// the end is passed. A library that answers with no later instant starts again as well.
const { spawnSync } = require('child_process');

const LIBRARIES = ['croner-7', 'croner-11'];
const ROUNDS = 3;
const WARM_UP = 100_000, MEASURE = 300_000; // microseconds of CPU
const at = (text) => Date.parse(text);
const HOUR = 3_600_000;
const GAP = at('2024-03-10T07:00Z'), OVERLAP = at('2024-11-03T06:00Z');
const FROM_2024 = [at('2024-01-01T00:00Z'), at('2100-01-01T00:00Z')];
const around = (instant, before, after) => [instant - before * HOUR, instant + after * HOUR];
const BOTH_DAYS = { legacyMode: false, domAndDow: true }; // its name in croner 7 and in croner 11

const SHAPES = {
  plain_every_5_minutes_utc: ['*/5 * * * *', FROM_2024, { timezone: 'UTC' }],
  plain_every_5_minutes_new_york: ['*/5 * * * *', FROM_2024],
  plain_daily_new_york: ['30 9 * * *', FROM_2024],
  plain_working_hours_new_york: ['0 9-17 * * 1-5', FROM_2024],
  plain_month_end_new_york: ['0 18 LW * *', FROM_2024],
  dst_gap_wall_clock: ['*/10 1-3 * * *', around(GAP, 2, 2)],
  dst_gap_interval: ['*/15 * * * *', around(GAP, 1, 1)],
  dst_overlap_wall_clock: ['*/10 0-3 * * *', around(OVERLAP, 2, 2)],
  dst_overlap_interval: ['*/15 * * * *', around(OVERLAP, 2, 2)],
  dst_every_gap: ['30 2 8-14 3 SUN', FROM_2024, BOTH_DAYS],
  sparse_leap_day: ['0 0 29 2 *', FROM_2024],
  sparse_leap_monday: ['0 0 29 2 1', FROM_2024, BOTH_DAYS],
  sparse_fifth_monday_of_february: ['0 0 * 2 1#5', FROM_2024],
  never: ['0 0 30 2 *', FROM_2024],
  parse: ['*/15 9-17 1,15,L JAN-JUN mon-fri'],
};

function cpu() {
  const { user, system } = process.cpuUsage();
  return user + system;
}

function rate(step, microseconds) {
  const started = cpu();
  let count = 0, spent = 0;
  do {
    for (let i = 0; i < 4; i += 1) step();
    count += 4;
    spent = cpu() - started;
  } while (spent < microseconds);
  return (count * 1e6) / spent;
}

function measure(library, shape) {
  const { Cron } = require(library);
  const [expression, window, options] = SHAPES[shape];
  const settings = { timezone: 'America/New_York', ...options };
  let step = () => new Cron(expression, settings);
  if (window) {
    const cron = new Cron(expression, settings);
    const [begin, end] = window.map((ms) => new Date(ms));
    let after = begin;
    step = () => {
      const next = cron.nextRun(after);
      after = next !== null && next > after && next < end ? next : begin;
    };
  }
  rate(step, WARM_UP);
  return rate(step, MEASURE);
}

// The answer of a child process, or null where it failed: that release does not know the expression.
function child(program, args, isEngine) {
  const { status, stdout, error } = spawnSync(program, args, { encoding: 'utf8', env: { ...process.env, TZ: 'UTC' },
    stdio: ['ignore', 'pipe', isEngine ? 'inherit' : 'ignore'] });
  if (error || (isEngine && status !== 0)) throw error || new Error(`${program} ended with ${status}`);
  return status === 0 ? stdout : null;
}

const median = (values) => [...values].sort((a, b) => a - b)[values.length >> 1];
const short = (value) => (value >= 1e6 ? `${(value / 1e6).toFixed(2)} M` : value >= 1e3 ? `${(value / 1e3).toFixed(1)} k` : value.toFixed(1));
const round = (value) => Number(value.toPrecision(2)).toLocaleString('en');

function show(values) {
  if (values.includes(null)) return 'refused';
  const spread = (Math.max(...values) - Math.min(...values)) / median(values);
  return `${short(median(values))} ±${Math.round(spread * 50)} %`;
}

function ratio(engine, other) {
  if (other.includes(null)) return '';
  const ratios = engine.map((value, i) => value / other[i]);
  return `${round(median(ratios))} (${round(Math.min(...ratios))} to ${round(Math.max(...ratios))})`;
}

function main(engine, shapes) {
  const names = LIBRARIES.map((name) => `croner ${require(`${name}/package.json`).version}`);
  console.log(`| shape | engine, /s | ${names.map((name) => `${name}, /s | engine : ${name}`).join(' | ')} |`);
  console.log(`|---|${'---|'.repeat(1 + 2 * names.length)}`);
  for (const shape of shapes) {
    const ours = [], theirs = LIBRARIES.map(() => []);
    for (let i = 0; i < ROUNDS; i += 1) {
      const args = [`--benchmark_filter=^${shape}$`, '--benchmark_format=json', '--benchmark_min_time=0.3'];
      ours.push(JSON.parse(child(engine, args, true)).benchmarks[0].items_per_second);
      LIBRARIES.forEach((library, k) => {
        const answer = child(process.execPath, [__filename, 'measure', library, shape]);
        theirs[k].push(answer === null ? null : Number(answer));
      });
    }
    const columns = theirs.flatMap((values) => [show(values), ratio(ours, values)]);
    console.log(`| \`${shape}\` | ${show(ours)} | ${columns.join(' | ')} |`);
  }
}

const [first, ...rest] = process.argv.slice(2);
if (first === 'measure') console.log(measure(...rest));
else main(first, rest.length > 0 ? rest : Object.keys(SHAPES));
