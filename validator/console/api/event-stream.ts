/** Reads server-sent events from a response, so that requests can have an Authorization header. */

export type StreamEvent = { id: string | null; event: string; data: string };

/** Upper bound of one event in characters; a longer one ends the stream with an error. */
const MAX_EVENT_CHARS = 4 * 1024 * 1024;

/** Yields the events until the body ends. An incomplete event at the end is dropped, as the standard requires. */
export async function* eventsIn(body: ReadableStream<Uint8Array>): AsyncGenerator<StreamEvent> {
  const decoder = new TextDecoder();
  const reader = body.getReader();
  let rest = '';
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      rest += decoder.decode(value, { stream: true });
      const blocks = rest.split(/\r?\n\r?\n/);
      rest = blocks.pop() ?? '';
      if (rest.length > MAX_EVENT_CHARS) throw new RangeError('an event is too long');
      for (const block of blocks) {
        const event = parseEvent(block);
        if (event !== null) yield event;
      }
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

/** Parses the lines of an event; null if it has neither data nor a type, such as a comment. */
export function parseEvent(block: string): StreamEvent | null {
  let id: string | null = null;
  let event = 'message';
  let hasContent = false;
  const data: string[] = [];
  for (const line of block.split(/\r?\n/)) {
    const colon = line.indexOf(':');
    const name = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (name === 'id') id = value;
    if (name === 'event') event = value;
    if (name === 'data') data.push(value);
    hasContent ||= name === 'event' || name === 'data';
  }
  return hasContent ? { id, event, data: data.join('\n') } : null;
}
