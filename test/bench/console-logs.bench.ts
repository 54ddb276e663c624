/**
 * The console's log view in Chromium while a pod writes 10,000 lines a second, compared with a bare page that appends the
 * same lines. Central API and pages run on this host; the node's log is in memory.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '#shared/runtime/clock.ts';
import { openCentralDatabase } from '../../validator/central/platform/database/database.ts';
import { fakeLine } from '../fakes/agents/fake-log.ts';
import { letTimePass } from '../fakes/passing-time.ts';
import { createConsoleScene } from '../fakes/scenes/console-scene.ts';
import type { ConsolePage } from '../fixtures/browser.ts';
import { finding, median, type Row, ratioAtMost } from '../measure/row.ts';

const LINES_PER_SECOND = 10_000;
const SECONDS = 8;
const LINES = LINES_PER_SECOND * SECONDS;
const ROUNDS = 3;
const MAX_RATIO = 2;
const MIN_SHARE = 0.99;
const PERCENT = 100;
const BATCH_MS = 10;
/** Time for the last lines to arrive and to be drawn. */
const SETTLE_MS = 3_000;
const TEXT = 'step loss=0.1234 lr=3.0e-4 tokens/s=123456';

/** Records the longest time between two pictures. */
const WATCH_FRAMES = `
  window.longestMs = 0;
  let before = performance.now();
  const tick = (now) => {
    window.longestMs = Math.max(window.longestMs, now - before);
    before = now;
    requestAnimationFrame(tick);
  };
  requestAnimationFrame(tick);`;

/** Replaces a page by one that appends each line of the same stream, and does nothing else. */
const barePage = (podId: string) => `(async () => {
  const { token } = JSON.parse(localStorage.getItem('podwright.session.user'));
  const headers = { Authorization: 'Bearer ' + token };
  const answer = await fetch('/api/pods/${podId}/stream-ticket', { method: 'POST', headers });
  const { ticket } = await answer.json();
  const lines = document.createElement('pre');
  document.body.replaceChildren(lines);
  const query = 'follow=true&tail=0&ticket=' + ticket;
  const socket = new WebSocket('ws://' + location.host + '/api/pods/${podId}/logs?' + query);
  socket.onmessage = ({ data }) => {
    const { log } = JSON.parse(data);
    if (log !== undefined) lines.append(log);
  };
  await new Promise((resolve) => { socket.onopen = resolve; });
})()`;

type Scene = Awaited<ReturnType<typeof startScene>>;

/** Measures both pages in turns, so that load on the host affects both alike. */
export async function consoleLogs(): Promise<Row[]> {
  const scene = await startScene();
  try {
    const bare: number[] = [];
    const ours: number[] = [];
    const shares: number[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      bare.push(await measureBare(scene));
      const { longestMs, share } = await measureOurs(scene);
      ours.push(longestMs);
      shares.push(share);
    }
    const share = Math.min(...shares);
    return [
      ratioAtMost(
        `longest frame at ${LINES_PER_SECOND} lines a second, median of ${ROUNDS} runs`,
        'ms',
        'a bare page that appends the same lines',
        { ours: median(ours), reference: median(bare) },
        MAX_RATIO,
      ),
      finding(
        'lines of the API in the view or inside a marked gap, worst run',
        share * PERCENT,
        '%',
        `at least ${MIN_SHARE * PERCENT} %`,
        share >= MIN_SHARE,
      ),
    ];
  } finally {
    await scene.close();
  }
}

async function startScene() {
  const home = mkdtempSync(join(tmpdir(), 'podwright-bench-'));
  const scene = await createConsoleScene({
    db: await openCentralDatabase(join(home, 'central.db')),
  });
  const { market } = scene;
  const account = await market.renter();
  const node = await market.verifiedNode();
  const podId: string = (await market.rent(account, node.id)).body.id;
  await market.sync();
  const { log } = market.agents.host(node.id);
  let last = 0;
  const stopTime = letTimePass(market.clock);
  return {
    podId,
    async open(path: string): Promise<ConsolePage> {
      log.rotate(last);
      const page = await scene.open({ account });
      await page.addInitScript(WATCH_FRAMES);
      await page.goto(path);
      return page;
    },
    /** Writes lines at the rate. */
    async write(): Promise<void> {
      const startMs = systemClock.monotonicMs();
      for (let written = 0; written < LINES; ) {
        await systemClock.sleep(BATCH_MS);
        const elapsedMs = systemClock.monotonicMs() - startMs;
        const due = Math.min(Math.floor((elapsedMs / 1_000) * LINES_PER_SECOND), LINES);
        const lines = Array.from({ length: due - written }, (_, at) =>
          fakeLine(last + at + 1, `${last + at + 1} ${TEXT}\n`),
        );
        last += lines.length;
        written = due;
        log.write(...lines);
      }
      await systemClock.sleep(SETTLE_MS);
    },
    async close(): Promise<void> {
      stopTime();
      await scene.close();
      rmSync(home, { recursive: true });
    },
  };
}

async function longestFrame(page: ConsolePage, run: () => Promise<void>): Promise<number> {
  await page.evaluate('window.longestMs = 0');
  await run();
  return Number(await page.evaluate('window.longestMs'));
}

async function measureBare({ open, write, podId }: Scene): Promise<number> {
  // Any page of the origin; its content is replaced.
  const page = await open('/no/such/page');
  await page.getByRole('heading').first().waitFor();
  await page.evaluate(barePage(podId));
  const longestMs = await longestFrame(page, write);
  await page.context().close();
  return longestMs;
}

async function measureOurs({ open, write, podId }: Scene) {
  const page = await open(`/pods/${podId}/logs?start=0`);
  await page.getByText('Connected.').waitFor();
  const longestMs = await longestFrame(page, write);
  const share = (await linesShown(page)) / LINES;
  await page.context().close();
  return { longestMs, share };
}

/** Lines that the view has, or reports as missing. */
async function linesShown(page: ConsolePage): Promise<number> {
  await page.getByLabel('Search').fill(TEXT);
  const counted = page.getByText(/^[\d,]+ lines$/);
  await counted.waitFor();
  await systemClock.sleep(SETTLE_MS);
  const noted = await page.getByText(/earlier lines have left the view/).allTextContents();
  const gaps = await page.getByText(/About [\d,]+ lines are missing/).allTextContents();
  const numbers = [(await counted.textContent()) ?? '', ...noted, ...gaps].map(numberIn);
  return numbers.reduce((sum, number) => sum + number, 0);
}

function numberIn(text: string): number {
  return Number((/[\d,]+/.exec(text)?.[0] ?? '0').replaceAll(',', ''));
}
