/** Whether an SSH server speaks at a port: Docker's proxy takes connections even when nothing listens behind it. */
import { connect } from 'node:net';
import type { Clock } from '#shared/runtime/clock.ts';

const BANNER_WITHIN_MS = 3_000;
/** Servers may say something before it (RFC 4253 4.2). */
const MAX_BYTES = 8_192;
const BANNER = /^SSH-2\.0-/m;
const LOOPBACK = '127.0.0.1';

export type ReadBanner = (port: number) => Promise<boolean>;

/** At a port of this host. */
export function createReadBanner(clock: Clock): ReadBanner {
  return (port) =>
    new Promise((resolve) => {
      const signal = clock.deadline(BANNER_WITHIN_MS);
      const socket = connect({ host: LOOPBACK, port });
      let heard = '';
      const end = (found: boolean) => {
        socket.destroy();
        resolve(found);
      };
      signal.addEventListener('abort', () => end(false), { once: true });
      socket.on('data', (data) => {
        heard += data.toString('latin1');
        if (BANNER.test(heard)) end(true);
        else if (heard.length > MAX_BYTES) end(false);
      });
      socket.once('error', () => end(false));
      socket.once('close', () => end(false));
    });
}
