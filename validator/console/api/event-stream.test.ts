import { expect, it } from 'vitest';
import { eventsIn, parseEvent } from './event-stream.ts';

const body = (...chunks: string[]) =>
  new ReadableStream<Uint8Array>({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(new TextEncoder().encode(chunk));
      controller.close();
    },
  });

it('joins events that arrive in pieces, and drops an incomplete one', async () => {
  const events = await Array.fromAsync(
    eventsIn(body('id: 1\nevent: lo', 'g\ndata: a\n', '\ndata: b\ndata: c\r\n\r\ndata: lost')),
  );
  expect(events).toEqual([
    { id: '1', event: 'log', data: 'a' },
    { id: null, event: 'message', data: 'b\nc' },
  ]);
});

it.each([
  [': comment', null],
  ['retry: 5', null],
  ['event: end', { id: null, event: 'end', data: '' }],
  ['data:x', { id: null, event: 'message', data: 'x' }],
])('parses %j', (block, expected) => expect(parseEvent(block)).toEqual(expected));

it('ends a stream with an endless event', async () => {
  const endless = body('data: ', 'x'.repeat(5 * 1024 * 1024));
  await expect(Array.fromAsync(eventsIn(endless))).rejects.toThrow('too long');
});
