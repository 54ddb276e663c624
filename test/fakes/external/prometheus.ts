/** A real Prometheus with our configuration and rules, in a temporary folder and on a free port. */
import { spawn } from 'node:child_process';
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { systemClock } from '#shared/runtime/clock.ts';
import { eventually } from '../eventually.ts';
import { freePorts } from '../free-ports.ts';

const RULES = 'podwright.rules.yml';
const AGENT_PLACE = '127.0.0.1:9100';
const CENTRAL_PLACE = '127.0.0.1:9101';
const VALIDATOR_PLACE = '127.0.0.1:9102';
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
const Metadata = z.record(z.string(), z.unknown());

export type Prometheus = Awaited<ReturnType<typeof startPrometheus>>;

/** Starts Prometheus, which scrapes the addresses every second. Resolves once it serves. */
export async function startPrometheus(places: {
  agent: string;
  central: string;
  validator: string;
}) {
  const folder = mkdtempSync(join(tmpdir(), 'podwright-prometheus-'));
  const ours = new URL('../../../systemd/prometheus', import.meta.url).pathname;
  const text = readFileSync(join(ours, 'prometheus.yml'), 'utf8')
    .replace(AGENT_PLACE, places.agent)
    .replace(CENTRAL_PLACE, places.central)
    .replace(VALIDATOR_PLACE, places.validator)
    .replace(/scrape_interval: \w+/, 'scrape_interval: 1s');
  writeFileSync(join(folder, 'prometheus.yml'), text);
  copyFileSync(join(ours, RULES), join(folder, RULES));
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
    /** Returns the names of all scraped metrics, with or without series. */
    names: async () => new Set(Object.keys(Metadata.parse(await ask('/api/v1/metadata')))),
  };
}
