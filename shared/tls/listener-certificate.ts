/** The certificate of a listener: configured files, or a self-signed one that is renewed in time. */
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
  /** PEM; for configured files, the whole chain. */
  cert: string;
  /** PEM. */
  key: string;
  pin: Pin;
  /** Milliseconds since the epoch. */
  notAfterMs: number;
};

/** Reads the certificate and renews a self-signed one. Called periodically. Throws if the certificate is unusable. */
export type CertificateSource = () => ListenerCertificate;

const DAY_MS = 86_400_000;
export const LIFETIME_MS = 365 * DAY_MS;
/**
 * Remaining time at which a self-signed certificate is renewed. The certificate can expire only if the process was
 * stopped for months.
 */
export const RENEWED_BEFORE_MS = 90 * DAY_MS;
/** Time by which new certificates are backdated, for peers whose clocks are behind. */
const BACKDATED_MS = DAY_MS;
const SERIAL_BYTES = 16;
const MAX_FILE_BYTES = 256 * 1024;

/**
 * Returns a source that reads the files named by `prefix`_TLS_CERT and `prefix`_TLS_KEY on each call, so that renewed
 * files take effect. It throws ConfigError with the variable and the file, but nothing of their contents.
 */
export function certificateFromFiles(
  certFile: string,
  keyFile: string,
  prefix: string,
): CertificateSource {
  const certName = `${prefix}_TLS_CERT (${certFile})`;
  const keyName = `${prefix}_TLS_KEY (${keyFile})`;
  return () => {
    const cert = readPem(certFile, certName);
    const key = readPem(keyFile, keyName);
    const read = parsed(() => new X509Certificate(cert), `${certName}: not a certificate in PEM`);
    const privateKey = parsed(() => createPrivateKey(key), `${keyName}: not a private key in PEM`);
    if (!read.checkPrivateKey(privateKey)) {
      throw new ConfigError(`${certName}: the certificate does not belong to ${keyName}`);
    }
    return { ...describe(cert, privateKey), key };
  };
}

function readPem(file: string, name: string): string {
  try {
    const status = statSync(file);
    if (!status.isFile()) throw new Error('not a file');
    if (status.size > MAX_FILE_BYTES) throw new Error(`more than ${MAX_FILE_BYTES} bytes`);
    return readFileSync(file, 'utf8');
  } catch (cause) {
    throw new ConfigError(`${name}: ${messageOf(cause)}`, { cause });
  }
}

function parsed<T>(parse: () => T, problem: string): T {
  try {
    return parse();
  } catch (cause) {
    throw new ConfigError(problem, { cause });
  }
}

export type SelfSignedOptions = {
  /** File of the certificate; mode 0600. */
  file: string;
  /** ed25519. Renewals keep the key, and so the pin. */
  privateKey: KeyObject;
  name: string;
  clock: Clock;
  random: Random;
};

export function selfSignedCertificate(options: SelfSignedOptions): CertificateSource {
  const { file, privateKey, clock } = options;
  const key = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  return () => {
    const stored = readStored(options);
    if (stored !== null && stored.notAfterMs - clock.now() > RENEWED_BEFORE_MS) {
      return { ...stored, key };
    }
    const cert = renew(options);
    replacePrivateFile(file, cert, options.random);
    return { ...describe(cert, privateKey), key };
  };
}

/** Returns null if there is no certificate of this key. */
function readStored({ file, privateKey }: SelfSignedOptions) {
  const bytes = readPrivateFile(file);
  if (bytes === null) return null;
  try {
    return describe(Buffer.from(bytes).toString(), privateKey);
  } catch {
    return null;
  }
}

function renew({ privateKey, name, clock, random }: SelfSignedOptions): string {
  const notBeforeMs = clock.now() - BACKDATED_MS;
  const notAfterMs = clock.now() + LIFETIME_MS;
  const serial = random.bytes(SERIAL_BYTES);
  return makeCertificate({ privateKey, name, notBeforeMs, notAfterMs, serial });
}

function describe(cert: string, privateKey: KeyObject): Omit<ListenerCertificate, 'key'> {
  const read = new X509Certificate(cert);
  if (!read.checkPrivateKey(privateKey)) throw new Error('the certificate belongs to another key');
  return { cert, pin: pinOfCertificate(read), notAfterMs: read.validToDate.getTime() };
}

/** Both files are set, or neither; `prefix` is that of the variables that name them. */
type ConfiguredFiles = {
  certFile: string | undefined;
  keyFile: string | undefined;
  prefix: string;
};

/**
 * Returns the source of the certificate: configured files if set, else a self-signed one. Null for a listener without
 * TLS.
 */
export function chooseCertificateSource(
  isSecure: boolean,
  { certFile, keyFile, prefix }: ConfiguredFiles,
  selfSigned: SelfSignedOptions,
): CertificateSource | null {
  if (!isSecure) return null;
  if (certFile === undefined || keyFile === undefined) return selfSignedCertificate(selfSigned);
  return certificateFromFiles(certFile, keyFile, prefix);
}

export const CERTIFICATE_INTERVAL_MS = 3_600_000;

export type CertificateJob = ReturnType<typeof createCertificateJob>;

/**
 * Updates the listener with renewed certificates, without a restart. Reads the source at once and throws if it is
 * unusable.
 */
export function createCertificateJob(source: CertificateSource, log: Log) {
  let current: ListenerCertificate = source();
  log.info({ pin: current.pin, not_after_ms: current.notAfterMs }, 'certificate loaded');

  /** Rejects if the source is unusable; the listener then keeps the current certificate. */
  async function runOnce(server: HttpServer): Promise<void> {
    const next = source();
    if (next.cert === current.cert && next.key === current.key) return;
    changeCertificate(server, next);
    current = next;
    log.info({ pin: next.pin, not_after_ms: next.notAfterMs }, 'certificate renewed');
  }

  return {
    current: () => current,
    runOnce,
    renewEvery(intervalMs: number, server: HttpServer, clock: Clock): Loop {
      const onError = (error: unknown) => log.error({ err: error }, 'certificate renewal failed');
      return startLoop({ clock, intervalMs, run: () => runOnce(server), onError });
    },
  };
}
