/** Creates self-signed X.509 certificates in DER; Node can only read them. Pure. */
import { createPublicKey, type KeyObject, sign } from 'node:crypto';
import { naiveUtc } from '../runtime/clock.ts';

export type CertificateParts = {
  /** ed25519. */
  privateKey: KeyObject;
  /** The common name and only subjectAltName. ASCII, at most 64 characters. */
  name: string;
  /** Milliseconds since the epoch; before 2050. */
  notBeforeMs: number;
  notAfterMs: number;
  /** Random; at most 20 bytes. */
  serial: Uint8Array;
};

const TAG = {
  boolean: 0x01,
  integer: 0x02,
  bits: 0x03,
  octets: 0x04,
  oid: 0x06,
  utf8: 0x0c,
  utcTime: 0x17,
  sequence: 0x30,
  set: 0x31,
  version: 0xa0,
  extensions: 0xa3,
  dnsName: 0x82,
} as const;

const LONGEST_SHORT_LENGTH = 0x7f;

const ED25519 = sequence(node(TAG.oid, [0x2b, 0x65, 0x70]));
const COMMON_NAME = node(TAG.oid, [0x55, 0x04, 0x03]);
const SUBJECT_ALT_NAME = node(TAG.oid, [0x55, 0x1d, 0x11]);
const VERSION_3 = node(TAG.version, node(TAG.integer, [2]));

/** Returns a self-signed version 3 certificate as PEM. */
export function makeCertificate(parts: CertificateParts): string {
  const name = sequence(node(TAG.set, sequence(COMMON_NAME, node(TAG.utf8, ascii(parts.name)))));
  const altNames = sequence(node(TAG.dnsName, ascii(parts.name)));
  const body = sequence(
    VERSION_3,
    // The leading 1 keeps the number positive and of fixed length.
    node(TAG.integer, [1, ...parts.serial.subarray(1)]),
    ED25519,
    name,
    sequence(utcTime(parts.notBeforeMs), utcTime(parts.notAfterMs)),
    name,
    createPublicKey(parts.privateKey).export({ type: 'spki', format: 'der' }),
    node(TAG.extensions, sequence(sequence(SUBJECT_ALT_NAME, node(TAG.octets, altNames)))),
  );
  const signature = node(TAG.bits, [0, ...sign(null, body, parts.privateKey)]);
  return pem(sequence(body, ED25519, signature));
}

function sequence(...members: Uint8Array[]): Buffer {
  return node(TAG.sequence, Buffer.concat(members));
}

function node(tag: number, content: Uint8Array | readonly number[]): Buffer {
  return Buffer.from([tag, ...lengthOf(content.length), ...content]);
}

function lengthOf(bytes: number): number[] {
  if (bytes <= LONGEST_SHORT_LENGTH) return [bytes];
  const digits: number[] = [];
  for (let left = bytes; left > 0; left >>= 8) digits.unshift(left & 0xff);
  return [0x80 | digits.length, ...digits];
}

/** Encodes `YYMMDDHHMMSSZ`, the form for years before 2050 (RFC 5280 4.1.2.5). */
function utcTime(epochMs: number): Buffer {
  const digits = naiveUtc(epochMs).replace(/\D/g, '').slice(2, 14);
  return node(TAG.utcTime, ascii(`${digits}Z`));
}

function ascii(text: string): Buffer {
  return Buffer.from(text, 'ascii');
}

function pem(der: Buffer): string {
  const lines = der.toString('base64').match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`;
}
