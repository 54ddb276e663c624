/**
 * Takes the screenshots of the README. `SCREENSHOTS=write` stores them in the checkout; otherwise the test only requires
 * that they can be taken, are small, and that the README shows them.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { naiveUtc } from '#shared/runtime/clock.ts';
import { fakeLine } from '../../fakes/agents/fake-log.ts';
import { letTimePass } from '../../fakes/passing-time.ts';
import type { TestAccount } from '../../fakes/scenes/central-fixture.ts';
import { type ConsoleScene, createConsoleScene } from '../../fakes/scenes/console-scene.ts';
import { type ConsolePage, settled } from '../../fixtures/browser.ts';
import { FAILED_CHECK } from '../../fixtures/failed-check.ts';

const ROOT = join(import.meta.dirname, '../../..');
const FOLDER = 'test/docs/screenshots';
const MAX_BYTES = 150_000;
const WIDTH = 1_280;
const HEIGHT = 720;
const LINES = 400;
const PASSED = {
  ...FAILED_CHECK,
  check_id: 'gpu_count',
  passed: true,
  reason_code: 'OK',
  measured: '2 GPUs',
  required: '2 GPUs',
  message: 'The host has the offered GPUs',
  remediation: '',
};

let scene: ConsoleScene;
let account: TestAccount;
let portalSession: { token: string; name: string };
let podId: string;
let failedId: string;
let stopTime: () => void;

beforeAll(async () => {
  scene = await createConsoleScene();
  const { market } = scene;
  account = await market.renter();
  const node = await market.verifiedNode({ gpus: 4, price: 2.4, minimum: 1 });
  await market.verifiedNode({ gpus: 8, price: 2.9, ...cardsOf('NVIDIA H200') });
  await market.verifiedNode({ gpus: 2, price: 1.15, ...cardsOf('NVIDIA A100-SXM4-80GB') });
  await market.verifiedNode({ gpus: 1, price: 0.8, ...cardsOf('NVIDIA L40S') });
  const failed = await market.addNode({ gpus: 2 });
  failedId = failed.id;
  await market.report(failed, { verdict: 'failed', checks: [FAILED_CHECK, PASSED] });
  podId = (await market.rent(account, node.id, { pod_name: 'train-7b', gpu_count: 2 })).body.id;
  await market.rent(account, node.id, { pod_name: 'notebook', gpu_count: 1 });
  await market.sync();
  const { log } = market.agents.host(node.id);
  const nowMs = market.clock.now();
  log.write(
    ...Array.from({ length: LINES }, (_, at) => ({
      ...fakeLine(at + 1, trainingLine(at)),
      ts: `${naiveUtc(nowMs - (LINES - at) * 500)}Z`,
    })),
  );
  portalSession = { token: await market.logIn(), name: market.provider.hotkey };
  stopTime = letTimePass(market.clock);
});
afterAll(async () => {
  stopTime?.();
  await scene?.close();
});

const cardsOf = (model: string) => ({ gpuType: model, name: model });

function trainingLine(at: number): string {
  const loss = (9 / Math.sqrt(at + 4) + 1).toFixed(4);
  return `\u001b[36mstep ${at * 10}\u001b[0m loss=${loss}\n`;
}

type Picture = { name: string; path: () => string; title: string | RegExp; shows: string };

const PICTURES: readonly Picture[] = [
  { name: 'home', path: () => '/', title: 'Home', shows: 'pods run' },
  { name: 'market', path: () => '/market', title: 'Market', shows: 'NVIDIA H200' },
  {
    name: 'logs',
    path: () => `/pods/${podId}/logs`,
    title: 'train-7b',
    shows: `step ${LINES * 10 - 10}`,
  },
  {
    name: 'verification',
    path: () => `/provider/nodes/${failedId}`,
    title: /^Node /,
    shows: FAILED_CHECK.measured,
  },
];

it.each(PICTURES)(
  'takes a small picture of the page $name, which the README shows',
  async (picture) => {
    const { name, path, title, shows } = picture;
    const page = await scene.open({ account, portalSession });
    await page.setViewportSize({ width: WIDTH, height: HEIGHT });
    await page.goto(path());
    await settled(page, title);
    await page.getByText(shows).first().waitFor();
    const bytes = await pictureOf(page);
    expect(page.problems).toEqual([]);
    if (process.env['SCREENSHOTS'] === 'write') {
      mkdirSync(join(ROOT, FOLDER), { recursive: true });
      writeFileSync(join(ROOT, FOLDER, `${name}.png`), bytes);
    }
    const committed = readFileSync(join(ROOT, FOLDER, `${name}.png`));
    for (const png of [bytes, committed]) {
      expect(png.length).toBeLessThan(MAX_BYTES);
      expect(widthOf(png)).toBe(WIDTH);
    }
    expect(readFileSync(join(ROOT, 'README.md'), 'utf8')).toContain(`](${FOLDER}/${name}.png)`);
    await page.context().close();
  },
);

function pictureOf(page: ConsolePage): Promise<Buffer> {
  return page.screenshot({ animations: 'disabled', caret: 'hide' });
}

/** Width in the header of a PNG. */
function widthOf(png: Buffer): number {
  return png.readUInt32BE(16);
}
