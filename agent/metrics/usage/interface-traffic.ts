/** What went through a network namespace's interfaces, of its `/proc/PID/net/dev`. Pure. */

/** Bytes received and sent; null where the namespace has no interface of ours. */
export type Traffic = { receivedBytes: number; sentBytes: number } | null;

/** As the engine calls its ends in a container: a bridge of the pod's own would count everything twice. */
const ENGINE_INTERFACE = /^eth\d+$/;
/** Columns after the name: bytes received first, bytes sent ninth. */
const SENT_COLUMN = 8;

export function trafficIn(text: string): Traffic {
  const interfaces = text.split('\n').flatMap((line) => {
    const colon = line.indexOf(':');
    if (colon === -1 || !ENGINE_INTERFACE.test(line.slice(0, colon).trim())) return [];
    // Old kernels write no blank after the colon.
    const columns = line
      .slice(colon + 1)
      .trim()
      .split(/\s+/)
      .map(Number);
    const [received = Number.NaN, sent = Number.NaN] = [columns[0], columns[SENT_COLUMN]];
    return Number.isFinite(received + sent) ? [{ received, sent }] : [];
  });
  if (interfaces.length === 0) return null;
  return {
    receivedBytes: interfaces.reduce((total, { received }) => total + received, 0),
    sentBytes: interfaces.reduce((total, { sent }) => total + sent, 0),
  };
}
