/**
 * Limits on values that agents report, far above those of real hosts. A response beyond a limit is invalid, so that no
 * agent can store a number that overflows a database column, a sum over nodes or a date.
 */
import { z } from 'zod';

/** Largest measured value, such as the KiB of a petabyte. */
export const MAX_FIGURE = 1e12;
/** Largest image or layer, bytes. */
export const MAX_BYTES = 1e14;
/** Maximum of reported durations; longer ones are reported as a week. */
export const MAX_WAIT_SECONDS = 7 * 24 * 3_600;
export const MAX_WAIT_MS = MAX_WAIT_SECONDS * 1_000;
/** Maximum of the reported age of a measurement; older ones are reported as a day old. */
export const MAX_AGE_MS = 24 * 3_600_000;
/** Most GPUs of a host: 64 cards with seven MIG devices each, rounded up. */
export const MAX_DEVICES = 512;
export const MAX_NAME_CHARS = 200;
export const MAX_TEXT_CHARS = 8_192;

const MAX_COUNTER = 2 ** 31 - 1;
/** Year 2248, in milliseconds since the epoch. */
const MAX_TIME_MS = 2 ** 43;

/** An integer amount in any unit. */
export const Amount = z.int().nonnegative().max(MAX_FIGURE);
/** Any measured value, negative ones included. */
export const Figure = z.number().min(-MAX_FIGURE).max(MAX_FIGURE);
export const Bytes = z.int().nonnegative().max(MAX_BYTES);
/** A count of generations, requests or restarts. */
export const Counter = z.int().nonnegative().max(MAX_COUNTER);
/** A time by the host's clock, milliseconds since the epoch. */
export const HostTime = z.int().nonnegative().max(MAX_TIME_MS);
/** Milliseconds since a measurement. */
export const Age = z.int().nonnegative().max(MAX_AGE_MS);
export const Port = z.int().min(1).max(65_535);
/** A name, version or id. */
export const Name = z.string().max(MAX_NAME_CHARS);
/** A sentence, or the last lines of a program's output, for people to read. */
export const Text = z.string().max(MAX_TEXT_CHARS);
