/** Shows the renewed certificate, ours or the given one, without a restart. */

import { changeCertificate, type HttpServer } from '../http/server.ts';
import type { Clock } from '../runtime/clock.ts';
import type { Log } from '../runtime/log.ts';
import { type Loop, startLoop } from '../runtime/loop.ts';
import type { CertificateSource, ListenerCertificate } from './listener-certificate.ts';

export const CERTIFICATE_INTERVAL_MS = 3_600_000;

export type CertificateJob = ReturnType<typeof createCertificateJob>;

/** Reads the source at once: a certificate that cannot be used stops the start. */
export function createCertificateJob(source: CertificateSource, log: Log) {
  let shown: ListenerCertificate = source();
  log.info({ pin: shown.pin, not_after_ms: shown.notAfterMs }, 'certificate');

  /** Rejects when the source cannot be read; the one before stays. */
  async function runOnce(server: HttpServer): Promise<void> {
    const next = source();
    if (next.cert === shown.cert && next.key === shown.key) return;
    changeCertificate(server, next);
    shown = next;
    log.info({ pin: next.pin, not_after_ms: next.notAfterMs }, 'certificate renewed');
  }

  return {
    shown: () => shown,
    runOnce,
    renewEvery(intervalMs: number, server: HttpServer, clock: Clock): Loop {
      const onError = (error: unknown) => log.error({ err: error }, 'certificate not renewed');
      return startLoop({ clock, intervalMs, run: () => runOnce(server), onError });
    },
  };
}
