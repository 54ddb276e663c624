/**
 * Packs the texts of documents. Documents of one version differ little, so a packed document is the compressed difference
 * from another document, the dictionary. Pure.
 */
import { deflateRawSync, inflateRawSync } from 'node:zlib';

/** Maximum length of an unpacked document. */
const MAX_BYTES = 16_000_000;

/** Base64 of raw deflate (RFC 1951) with a preset dictionary, of which the last 32 KiB count. */
export const pack = (text: string, dictionary: string): string =>
  deflateRawSync(text, { dictionary: Buffer.from(dictionary) }).toString('base64');

/** Throws if the text was not packed with this dictionary. */
export const unpack = (packed: string, dictionary: string): string =>
  inflateRawSync(Buffer.from(packed, 'base64'), {
    dictionary: Buffer.from(dictionary),
    maxOutputLength: MAX_BYTES,
  }).toString();
