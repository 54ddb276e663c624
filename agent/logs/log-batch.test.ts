import { expect, it } from 'vitest';
import { dataFrame } from '#shared/http/event-stream.ts';
import { batchOf } from './log-batch.ts';
import { rotatedAway } from './log-gap.ts';

it('counts lines, and takes nothing that a line says for another', () => {
  const line = dataFrame({ log: 'data: {"log":"me"}\n', id: 'a', ts: 't' });
  const text = line + rotatedAway(7) + line + dataFrame({});
  expect(batchOf(text)).toEqual({ bytes: Buffer.byteLength(text), lines: 2, dropped: 7 });
  expect(batchOf(dataFrame({}))).toMatchObject({ lines: 0, dropped: null });
});
