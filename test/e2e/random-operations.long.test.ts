/**
 * Random operations and faults on a real engine. RANDOM_SEED sets the seed; `npm run soak -- --only random` runs for
 * longer.
 */
import { expect, it } from 'vitest';
import { runAtRandom } from '../soak/random-run.ts';

const SEED = Number(process.env['RANDOM_SEED'] ?? 20_261_121);
const OPERATIONS = 40;
const TEST_MS = 300_000;

it(
  `after random requests and kills no pod is duplicated, no object is left over, and every pod settles, seed ${SEED}`,
  async () => {
    const counts = await runAtRandom(SEED, (done) => done < OPERATIONS);
    for (const name of ['put', 'change', 'reboot', 'remove', 'kill agent', 'kill container']) {
      expect(counts[name], name).toBeGreaterThan(0);
    }
  },
  TEST_MS,
);
