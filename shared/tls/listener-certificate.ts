/** The certificate that a listener shows: given files, or one of our own that is renewed in time. */
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { changeCertificate, type HttpServer } from '../http/server.ts';
import type { Clock } from '../runtime/clock.ts';
import { ConfigError } from '../runtime/config.ts';
import { messageOf } from '../runtime/errors.ts';
import { readPrivateFile, replacePrivateFile } from '../runtime/files.ts';
import type { Log } from '../runtime/log.ts';
import { type Loop, startLoop } from '../runtime/loop.ts';
import type { Random } from '../runtime/random.ts';
import { makeCertificate } from './certificate.ts';
import { type Pin, pinOfCertificate } from './peer.ts';

export type ListenerCertificate = {
  /** PEM, the whole chain where it was given. */
  cert: string;
  /** PEM. */
  key: string;
  pin: Pin;
  /** Milliseconds since the epoch. */
  notAfterMs: number;
};

/** Reads (and where it is ours, renews) the certificate; throws when it cannot be used. Called again and again. */
export type CertificateSource = () => ListenerCertificate;

const DAY_MS = 86_400_000;
export const LIFETIME_MS = 365 * DAY_MS;
/** Ours is made anew when less is left, so that no process meets its end but one that stood still for months. */
export const RENEWED_BEFORE_MS = 90 * DAY_MS;
/** Peers whose clocks are behind take a new one too. */
const BACKDATED_MS = DAY_MS;
const SERIAL_BYTES = 16;
const MAX_FILE_BYTES = 256 * 1024;

/**
 * Files of somebody else's making, which `prefix`_TLS_CERT and _TLS_KEY name, read anew each time: whoever renews them
 * replaces them. What it gives throws ConfigError that names the variable and the file, and nothing of what is in it.
 */
export function certificateFromFiles(
  certFile: string,
  keyFile: string,
  prefix: string,
): CertificateSource {
  const ofCert = `${prefix}_TLS_CERT (${certFile})`;
  const ofKey = `${prefix}_TLS_KEY (${keyFile})`;
  return () => {
    const cert = textOf(certFile, ofCert);
    const key = textOf(keyFile, ofKey);
    const read = parsed(() => new X509Certificate(cert), `${ofCert}: no certificate in PEM`);
    const privateKey = parsed(() => createPrivateKey(key), `${ofKey}: no private key in PEM`);
    if (!read.checkPrivateKey(privateKey)) {
      throw new ConfigError(`${ofCert}: the certificate is of another key than ${ofKey}`);
    }
    return { ...describe(cert, privateKey), key };
  };
}

function textOf(file: string, named: string): string {
  try {
    const status = statSync(file);
    if (!status.isFile()) throw new Error('not a file');
    if (status.size > MAX_FILE_BYTES) throw new Error(`more than ${MAX_FILE_BYTES} bytes`);
    return readFileSync(file, 'utf8');
  } catch (cause) {
    throw new ConfigError(`${named}: ${messageOf(cause)}`, { cause });
  }
}

function parsed<T>(parse: () => T, refusal: string): T {
  try {
    return parse();
  } catch (cause) {
    throw new ConfigError(refusal, { cause });
  }
}

export type SelfSignedOptions = {
  /** Where it is kept; mode 0600. */
  file: string;
  /** ed25519: stays the same, and with it the pin. */
  privateKey: KeyObject;
  name: string;
  clock: Clock;
  random: Random;
};

export function selfSignedCertificate(options: SelfSignedOptions): CertificateSource {
  const { file, privateKey, clock } = options;
  const key = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  return () => {
    const kept = readKept(options);
    if (kept !== null && kept.notAfterMs - clock.now() > RENEWED_BEFORE_MS) return { ...kept, key };
    const cert = renewed(options);
    replacePrivateFile(file, cert, options.random);
    return { ...describe(cert, privateKey), key };
  };
}

/** Null where there is none, or none of this key. */
function readKept({ file, privateKey }: SelfSignedOptions) {
  const bytes = readPrivateFile(file);
  if (bytes === null) return null;
  try {
    return describe(Buffer.from(bytes).toString(), privateKey);
  } catch {
    return null;
  }
}

function renewed({ privateKey, name, clock, random }: SelfSignedOptions): string {
  const notBeforeMs = clock.now() - BACKDATED_MS;
  const notAfterMs = clock.now() + LIFETIME_MS;
  const serial = random.bytes(SERIAL_BYTES);
  return makeCertificate({ privateKey, name, notBeforeMs, notAfterMs, serial });
}

function describe(cert: string, privateKey: KeyObject): Omit<ListenerCertificate, 'key'> {
  const read = new X509Certificate(cert);
  if (!read.checkPrivateKey(privateKey)) throw new Error('the certificate is of another key');
  return { cert, pin: pinOfCertificate(read), notAfterMs: read.validToDate.getTime() };
}

/** Both or none; `prefix` is that of the variables which name them. */
type GivenFiles = { certFile: string | undefined; keyFile: string | undefined; prefix: string };

/** Either of the two: given files go before our own. Null where the listener is plain. */
export function chooseCertificateSource(
  isSecure: boolean,
  { certFile, keyFile, prefix }: GivenFiles,
  own: SelfSignedOptions,
): CertificateSource | null {
  if (!isSecure) return null;
  if (certFile === undefined || keyFile === undefined) return selfSignedCertificate(own);
  return certificateFromFiles(certFile, keyFile, prefix);
}

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
