/**
 * The console's market page in Chromium with 100,000 nodes, compared with the same page with 100 nodes: the time from the
 * navigation until the page shows its nodes and answers to a key. Central APIs and pages run on this host, on SQLite.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openCentralDatabase } from '../../validator/central/platform/database/database.ts';
import { runSql } from '../fakes/scenes/central-database.ts';
import type { TestAccount } from '../fakes/scenes/central-fixture.ts';
import { type ConsoleScene, createConsoleScene } from '../fakes/scenes/console-scene.ts';
import { median, type Row, ratioAtMost } from '../measure/row.ts';
import { seedMarket } from './market-seed.ts';

const SMALL = 100;
const LARGE = 100_000;
const ROUNDS = 15;
/** Rounds that fill the caches of the servers and of the browsers' code. */
const WARM_UP = 3;
const MOST_RATIO = 1.5;
const PRICE_STEP_UUSD = 3_000;
const NODES_OF_PAGE = 25;

/** A promise of the milliseconds from the navigation until all panels show data and a field accepts a key. */
const WATCH = `window.interactive = new Promise((resolve) => {
  const look = () => {
    const rows = document.querySelectorAll('table.data tbody tr').length;
    const isLoading = document.querySelector('.loading') !== null;
    const field = document.querySelector('input[name="price_lte"]');
    if (rows < ${NODES_OF_PAGE} || isLoading || field === null) return requestAnimationFrame(look);
    field.focus();
    document.execCommand('insertText', false, '9');
    requestAnimationFrame(() => resolve(field.value === '9' ? performance.now() : NaN));
  };
  look();
});`;

type Side = { scene: ConsoleScene; account: TestAccount };

/** Measures both sizes in turns, each first in every other round, so that load on the host affects both alike. */
export async function consoleMarket(): Promise<Row[]> {
  const folder = mkdtempSync(join(tmpdir(), 'podwright-bench-'));
  const small = await sideOf(SMALL, join(folder, 'small.db'));
  const large = await sideOf(LARGE, join(folder, 'large.db'));
  const times = { ours: [] as number[], reference: [] as number[] };
  try {
    for (let round = 0; round < WARM_UP + ROUNDS; round += 1) {
      const sides = [
        { side: small, measured: times.reference },
        { side: large, measured: times.ours },
      ];
      for (const { side, measured } of round % 2 === 0 ? sides : sides.toReversed()) {
        const ms = await timeOf(side, round);
        if (round >= WARM_UP) measured.push(ms);
      }
    }
  } finally {
    await large.scene.close();
    await small.scene.close();
    rmSync(folder, { recursive: true });
  }
  return [
    ratioAtMost(
      `market page interactive with ${LARGE} nodes, median of ${ROUNDS} loads`,
      'ms',
      `${SMALL} nodes`,
      { ours: median(times.ours), reference: median(times.reference) },
      MOST_RATIO,
    ),
  ];
}

async function sideOf(nodes: number, address: string): Promise<Side> {
  const db = await openCentralDatabase(address);
  await seedMarket(db, nodes);
  await runSql(db, 'analyze');
  const scene = await createConsoleScene({ db });
  return { scene, account: await scene.market.signUp() };
}

/** Loads the page in a new profile, after the change of a price, so that no answer can be repeated unchanged. */
async function timeOf({ scene, account }: Side, round: number): Promise<number> {
  const { db } = scene.market.ports;
  const { id } = await db
    .selectFrom('executors')
    .select('id')
    .orderBy('id')
    .limit(1)
    .executeTakeFirstOrThrow();
  await db
    .updateTable('executors')
    .set({ price_uusd_per_gpu_hour: 300_000 + round * PRICE_STEP_UUSD })
    .where('id', '=', id)
    .execute();
  const page = await scene.open({ account });
  await page.addInitScript(WATCH);
  await page.goto('/market');
  const ms = Number(await page.evaluate('window.interactive'));
  if (Number.isNaN(ms)) throw new Error('a field of the market page did not accept a key');
  if (page.problems.length > 0) throw new Error(page.problems.join('\n'));
  await page.context().close();
  return ms;
}
