/** Kills every part of a rented, billed marketplace for some minutes, and checks that nothing is lost. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Row } from '../measure/row.ts';

const RUN = join(import.meta.dirname, 'chaos-run.ts');
/** The engine and the agents change interfaces and firewall rules, so the run has a separate network. */
const OWN_NETWORK = ['--net', 'sh', '-c', 'ip link set lo up && exec "$@"', 'sh'];

/** Starts the run in a separate network. Needs root. Rejects if the run itself fails; violations are rows. */
export async function chaosUnderBilling(options: {
  seed: number;
  minutes: number;
  without: readonly string[];
}): Promise<Row[]> {
  const words = [...OWN_NETWORK, process.execPath, RUN, JSON.stringify(options)];
  const run = spawn('unshare', words, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  let rows: Row[] | null = null;
  run.on('message', (message) => {
    rows = message as Row[];
  });
  await once(run, 'exit');
  if (rows === null) throw new Error(`chaos, seed ${options.seed}: the run failed`);
  return rows;
}
