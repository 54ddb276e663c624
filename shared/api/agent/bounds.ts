/**
 * How large what an agent says may be. An honest host stays far below; what is beyond is no answer, so that no
 * agent can store a number that its readers choke on: a column, a sum over nodes, a date.
 */
import { z } from 'zod';

/** Of any single measured figure: KiB of a petabyte, say. */
export const MAX_FIGURE = 1e12;
/** Bytes of an image or of a layer. */
export const MAX_BYTES = 1e14;
/** What is expected or measured to take longer is told as a week. */
export const MAX_WAIT_SECONDS = 7 * 24 * 3_600;
export const MAX_WAIT_MS = MAX_WAIT_SECONDS * 1_000;
/** What was measured before that is told as a day old. */
export const MAX_AGE_MS = 24 * 3_600_000;
/** GPUs of a host: 64 cards in seven parts each, and some. */
export const MAX_DEVICES = 512;
export const MAX_NAME_CHARS = 200;
export const MAX_TEXT_CHARS = 8_192;

const MAX_COUNTER = 2 ** 31 - 1;
/** In the year 2248. */
const MAX_TIME_MS = 2 ** 43;

/** A whole amount, in whatever unit. */
export const Amount = z.int().nonnegative().max(MAX_FIGURE);
/** Any figure, below zero too. */
export const Figure = z.number().min(-MAX_FIGURE).max(MAX_FIGURE);
export const Bytes = z.int().nonnegative().max(MAX_BYTES);
/** Of generations, requests and restarts. */
export const Counter = z.int().nonnegative().max(MAX_COUNTER);
/** A host's clock, milliseconds since the epoch. */
export const HostTime = z.int().nonnegative().max(MAX_TIME_MS);
/** Milliseconds since something was measured. */
export const Age = z.int().nonnegative().max(MAX_AGE_MS);
export const Port = z.int().min(1).max(65_535);
/** What something is called: a product, a version, an id. */
export const Name = z.string().max(MAX_NAME_CHARS);
/** A sentence, or the last lines of what a program said. */
export const Text = z.string().max(MAX_TEXT_CHARS);
