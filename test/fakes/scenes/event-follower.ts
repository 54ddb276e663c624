/** Reads a resumable event stream frame by frame. */
export type Frame = { id: string | null; event: string | null; data: string | null };

/** Returns the frames in one chunk of a stream. Skips comments and frames that have only `retry:`. */
export function framesIn(text: string): Frame[] {
  return text
    .split('\n\n')
    .map((frame) => ({
      id: fieldOf(frame, 'id'),
      event: fieldOf(frame, 'event'),
      data: fieldOf(frame, 'data'),
    }))
    .filter(({ data }) => data !== null);
}

function fieldOf(frame: string, name: string): string | null {
  const line = frame.split('\n').find((text) => text.startsWith(`${name}: `));
  return line?.slice(name.length + 2) ?? null;
}

/** Yields the frames of a response as they arrive. */
export async function* framesOf(response: Response): AsyncGenerator<Frame> {
  const decoder = new TextDecoder();
  let pending = '';
  for await (const chunk of response.body ?? []) {
    pending += decoder.decode(chunk, { stream: true });
    const end = pending.lastIndexOf('\n\n') + 2;
    if (end < 2) continue;
    yield* framesIn(pending.slice(0, end));
    pending = pending.slice(end);
  }
}
