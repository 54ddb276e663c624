import { expect, it } from 'vitest';
import { createManualClock } from '../../../../test/fakes/manual-clock.ts';
import { followHub } from './log-follower.ts';
import { LARGE_PAGE_CHARS, type LogHub } from './log-hub.ts';
import type { LogPage, LogPageRequest } from './log-page.ts';
import { createLogRing } from './log-ring.ts';

const textOf = (number: number) => `data: ${number}\n\n`;
const idOf = (number: number) => `c.${number}.0`;
/** Lines that a ring of this size has. */
const RING_LINES = 40;
const LARGE_LINES = 25;
const SMALL_LINES = 5;

/** Hub of a log with `written` lines, of which the ring has the last RING_LINES. */
function hubWith(written: number, mayReserve = true) {
  const ring = createLogRing(RING_LINES * textOf(100).length);
  const requests: LogPageRequest[] = [];
  let reserved = 0;
  ring.startAfter(null);
  const write = (from: number, to: number) => {
    for (let line = from; line <= to; line += 1) ring.push({ id: idOf(line), text: textOf(line) });
  };
  const hub: LogHub = {
    ring,
    ready: async () => undefined,
    arrived: (_, signal) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason));
      }),
    async page(request): Promise<LogPage> {
      requests.push(request);
      const lines = request.maxChars === undefined ? SMALL_LINES : LARGE_LINES;
      const after = Number(request.from.since?.split('.')[1] ?? 0);
      const last = Math.min(after + lines, written);
      const numbers = Array.from({ length: last - after }, (_, index) => after + index + 1);
      const lastId = numbers.length === 0 ? null : idOf(last);
      return { text: numbers.map(textOf).join(''), lastId, gap: false, more: last < written };
    },
    reserveLargePage() {
      if (!mayReserve) return null;
      reserved += 1;
      return () => {
        reserved -= 1;
      };
    },
  };
  write(100, written);
  return { hub, requests, reserved: () => reserved };
}

/** Reads until the line `last`; returns the numbers of all lines. */
async function readUntil(hub: LogHub, last: number): Promise<number[]> {
  const leave = new AbortController();
  const options = { hub, clock: createManualClock(), from: { tail: 1_000 }, signal: leave.signal };
  const numbers: number[] = [];
  for await (const text of followHub(options)) {
    numbers.push(...[...text.matchAll(/data: (\d+)/g)].map(([, number]) => Number(number)));
    if (numbers.at(-1) === last) break;
  }
  leave.abort();
  return numbers;
}

const upTo = (last: number) => Array.from({ length: last }, (_, index) => index + 1);

it('gives a reader that is behind large pages, until the shared stream has its next line', async () => {
  const { hub, requests, reserved } = hubWith(180);
  expect(await readUntil(hub, 180)).toEqual(upTo(180));
  // 5 and 6 × 25 lines; the ring has the lines from 141 on.
  expect(requests.map(({ maxChars }) => maxChars)).toEqual([
    undefined,
    ...Array.from({ length: 6 }, () => LARGE_PAGE_CHARS),
  ]);
  expect(reserved()).toBe(0);
});

it('gives small pages to a reader if too many readers have large ones', async () => {
  const { hub, requests } = hubWith(180, false);
  expect(await readUntil(hub, 180)).toEqual(upTo(180));
  expect(requests.every(({ maxChars }) => maxChars === undefined)).toBe(true);
  expect(requests.length).toBe(140 / SMALL_LINES);
});
