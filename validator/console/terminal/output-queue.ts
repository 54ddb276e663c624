/** Output on its way to the screen. Bounded, because browsers cannot slow down a WebSocket. Pure. */

/** Bytes that may wait for the screen; further ones are skipped. */
export const MAX_WAITING_BYTES = 16 * 1024 * 1024;

/** `write` calls `done` when the screen has processed the bytes. */
export function createOutputQueue(
  write: (bytes: Uint8Array | string, done: () => void) => void,
  maxBytes = MAX_WAITING_BYTES,
) {
  let waiting = 0;
  let skipped = 0;

  function written(count: number): void {
    waiting -= count;
    if (waiting > 0 || skipped === 0) return;
    const notice = `\r\n[${skipped.toLocaleString('en-US')} bytes of output were skipped: the shell writes faster than the screen]\r\n`;
    skipped = 0;
    write(notice, () => undefined);
  }

  return {
    push(bytes: Uint8Array): void {
      if (skipped > 0 || waiting + bytes.length > maxBytes) {
        skipped += bytes.length;
        return;
      }
      waiting += bytes.length;
      write(bytes, () => written(bytes.length));
    },
  };
}
