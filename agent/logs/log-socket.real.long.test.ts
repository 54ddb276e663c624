import { afterAll, beforeAll, it } from 'vitest';
import { systemClock } from '#shared/runtime/clock.ts';
import { createSequenceCheck } from '../../test/bench/log-pod.ts';
import { type WrittenLog, writeLog } from '../../test/fakes/agents/written-log.ts';
import { eventually } from '../../test/fakes/eventually.ts';

const LINES = 300_000;
let log: WrittenLog;
beforeAll(async () => {
  log = await writeLog(LINES);
});
afterAll(() => log.close());

it('waits for a stalled client, and loses no line', async () => {
  const socket = await log.open('since=0&follow=true');
  const check = createSequenceCheck(/"log":"(\d{6}) /g);
  // Long enough for the agent to fill every buffer between the log and the client.
  await systemClock.sleep(2_000);
  socket.on('message', (data) => check.push(Buffer.from(`${data}\n`)));
  socket.resume();
  await eventually('all lines', () => check.count() === LINES, 100_000);
  socket.terminate();
});
