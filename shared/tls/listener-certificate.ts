/** The certificate that a listener shows: given files, or one of our own that is renewed in time. */
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Clock } from '../clock.ts';
import { readPrivateFile, replacePrivateFile } from '../private-file.ts';
import type { Random } from '../random.ts';
import { makeCertificate } from './certificate.ts';
import { type Pin, pinOfCertificate } from './pin.ts';

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
const MAX_FILE_CHARS = 256 * 1024;

/** Files of somebody else's making, read anew each time: whoever renews them replaces them. */
export function certificateFiles(certFile: string, keyFile: string): CertificateSource {
  return () => {
    const cert = readFileSync(certFile, 'utf8');
    const key = readFileSync(keyFile, 'utf8');
    if (cert.length > MAX_FILE_CHARS) throw new Error(`${certFile} is no certificate`);
    return { ...describe(cert, createPrivateKey(key)), key };
  };
}

export type OwnCertificateOptions = {
  /** Where it is kept; mode 0600. */
  file: string;
  /** ed25519: stays the same, and with it the pin. */
  privateKey: KeyObject;
  name: string;
  clock: Clock;
  random: Random;
};

export function ownCertificate(options: OwnCertificateOptions): CertificateSource {
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
function readKept({ file, privateKey }: OwnCertificateOptions) {
  const bytes = readPrivateFile(file);
  if (bytes === null) return null;
  try {
    return describe(Buffer.from(bytes).toString(), privateKey);
  } catch {
    return null;
  }
}

function renewed({ privateKey, name, clock, random }: OwnCertificateOptions): string {
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

/** Either of the two: given files go before our own. Null where the listener is plain. */
export function certificatesFor(
  isSecure: boolean,
  { certFile, keyFile }: { certFile: string | undefined; keyFile: string | undefined },
  own: OwnCertificateOptions,
): CertificateSource | null {
  if (!isSecure) return null;
  if (certFile === undefined || keyFile === undefined) return ownCertificate(own);
  return certificateFiles(certFile, keyFile);
}
