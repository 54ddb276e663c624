/** A real Prometheus with our configuration and rules, in a temporary folder and on a free port. */
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { systemClock } from '#shared/runtime/clock.ts';
import { eventually } from '../eventually.ts';
import { freePorts } from '../free-ports.ts';

const RULES = 'podwright.rules.yml';
const SHIPPED = new URL('../../../systemd/prometheus', import.meta.url).pathname;
const ANSWER_WITHIN_MS = 10_000;

const Answer = z.object({ status: z.literal('success'), data: z.unknown() });
const Vector = z.object({
  result: z.array(
    z.object({
      metric: z.record(z.string(), z.string()),
      value: z.tuple([z.number(), z.string()]),
    }),
  ),
});
const Matrix = z.object({
  result: z.array(z.object({ values: z.array(z.tuple([z.number(), z.string()])) })),
});
const Metadata = z.record(z.string(), z.unknown());

export type Prometheus = Awaited<ReturnType<typeof startPrometheus>>;

/**
 * Starts Prometheus with a configuration that names the shipped alert rules. It scrapes and evaluates every second.
 * `isImmediate`: alerts fire without the time of their `for`. Resolves once Prometheus serves.
 */
export async function startPrometheus(config: string, { isImmediate = false } = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'podwright-prometheus-'));
  const text = config
    .replace(/(?<=(?:scrape|evaluation)_interval"?: *"?)\w+/g, '1s')
    .replace(/[\w./-]*podwright\.rules\.yml/, RULES);
  writeFileSync(join(folder, 'prometheus.yml'), text);
  const rules = readFileSync(join(SHIPPED, RULES), 'utf8');
  const shortened = rules.replace(/^( +for:).+$/gm, '$1 0s');
  writeFileSync(join(folder, RULES), isImmediate ? shortened : rules);
  const { first: port } = await freePorts(1);
  const child = spawn(
    'prometheus',
    [
      `--config.file=${join(folder, 'prometheus.yml')}`,
      `--storage.tsdb.path=${join(folder, 'data')}`,
      `--web.listen-address=127.0.0.1:${port}`,
      '--log.level=error',
    ],
    { stdio: ['ignore', 'ignore', 'inherit'] },
  );
  const exited = new Promise<void>((resolve) => {
    child.once('exit', () => resolve());
    // Emitted if the program is not installed.
    child.once('error', () => resolve());
  });
  const startedMs = systemClock.now();
  const origin = `http://127.0.0.1:${port}`;

  async function ask(path: string): Promise<unknown> {
    const response = await fetch(origin + path, { signal: systemClock.deadline(ANSWER_WITHIN_MS) });
    const answer: unknown = await response.json();
    const parsed = Answer.safeParse(answer);
    if (!parsed.success) throw new Error(`${path}: ${JSON.stringify(answer)}`);
    return parsed.data.data;
  }

  async function stop(): Promise<void> {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGTERM');
    await exited;
    rmSync(folder, { recursive: true, force: true });
  }

  const isReady = async () => {
    if (child.exitCode !== null || child.pid === undefined) throw new Error('Prometheus has ended');
    return fetch(`${origin}/-/ready`).then(
      ({ ok }) => ok,
      () => false,
    );
  };
  await eventually('Prometheus', isReady).catch(async (error: unknown) => {
    await stop();
    throw error;
  });
  return {
    stop,
    /** Returns the current series of an expression. Rejects with Prometheus's message if the expression is invalid. */
    query: async (expression: string) =>
      Vector.parse(await ask(`/api/v1/query?query=${encodeURIComponent(expression)}`)).result,
    /**
     * Returns whether an expression has a value since Prometheus started, as a dashboard with this range shows it. NaN
     * is not a value. Rejects with Prometheus's message if the expression is invalid.
     */
    async hasData(expression: string): Promise<boolean> {
      const seconds = Math.ceil((systemClock.now() - startedMs) / 1_000);
      const range = { start: startedMs / 1_000, end: startedMs / 1_000 + seconds, step: 1 };
      const query = Object.entries({ query: expression, ...range }).map(
        ([name, value]) => `${name}=${encodeURIComponent(value)}`,
      );
      const { result } = Matrix.parse(await ask(`/api/v1/query_range?${query.join('&')}`));
      return result.some(({ values }) => values.some(([, value]) => value !== 'NaN'));
    },
    /** Returns the names of all scraped metrics, with or without series. */
    names: async () => new Set(Object.keys(Metadata.parse(await ask('/api/v1/metadata')))),
  };
}
