/** Ordinary rentals, from recorded use of the product; README.md in this folder has the recording. */
import { z } from 'zod';
import type { Random } from '#shared/runtime/random.ts';
import recorded from './ordinary-use.json' with { type: 'json' };

/** Number of recorded cases. */
const Count = z.int().min(1);

const Recorded = z.strictObject({
  /** Rent requests that use official templates; `template` is the place in the market's list. */
  requests: z
    .array(
      z.strictObject({
        count: Count,
        template: z.int().min(0),
        gpu_count: z.int().min(1).exactOptional(),
        initial_port_count: z.int().min(0).exactOptional(),
        termination_hours: z.number().min(1).exactOptional(),
        max_spend_usd: z.number().min(0).exactOptional(),
        idle_shutdown_minutes: z.number().min(1).exactOptional(),
        enable_jupyter: z.literal(true).exactOptional(),
      }),
    )
    .min(1),
  /** Each name once: hosts do not see it, and most requests of tests have that of one fixture. */
  pod_names: z.array(z.string()).min(1),
  /** Names of owners of computers. */
  users: z.array(z.string().min(1)).min(1),
  /**
   * `{user}` and `{User}` in a comment are a name of `users`; `{hex}`, `{id}` and `{byte}` are parts that differ from
   * computer to computer.
   */
  keys: z
    .array(
      z.strictObject({
        count: Count,
        type: z.enum(['ed25519', 'rsa', 'ecdsa']),
        bits: z.int().min(256).max(16_384),
        comment: z.string(),
      }),
    )
    .min(1),
  /** Uses of the pod until the first login. */
  courses: z
    .array(
      z.strictObject({
        count: Count,
        /** Pause between two reads of the pod while it starts. */
        poll_ms: z.int().min(1),
        /** Milliseconds from the answer that the pod runs to the connection of the SSH client. */
        login_after_ms: z.int().min(0),
        /** `LANG` of the SSH client; null if it has none. */
        locale: z.string().nullable(),
      }),
    )
    .min(1),
});

/** Least and most milliseconds. */
type Span = readonly [number, number];

export type OrdinaryUse = z.output<typeof Recorded> & {
  between_measurements_ms: Span;
  linger_ms: Span;
};

/** Waits after the first login, which no ordinary rental determines: the host has seen the program by then. */
const WAITS = {
  between_measurements_ms: [240_000, 1_500_000],
  linger_ms: [1_000, 240_000],
} as const;

export const ORDINARY_USE: OrdinaryUse = { ...Recorded.parse(recorded), ...WAITS };

/** Draws a case by its frequency. */
export function drawn<T extends { count: number }>(random: Random, cases: readonly T[]): T {
  let rest = random.int(cases.reduce((sum, { count }) => sum + count, 0));
  for (const each of cases) {
    if (rest < each.count) return each;
    rest -= each.count;
  }
  throw new Error('there is no case');
}

const STEPS = 1_000_000;

/** Draws a duration whose logarithm is uniform: short waits are frequent, long ones occur. */
export function drawnMs(random: Random, [least, most]: Span): number {
  const low = Math.log(least + 1);
  return Math.round(Math.exp(low + ((Math.log(most + 1) - low) * random.int(STEPS)) / STEPS) - 1);
}

export const oneOf = <T>(random: Random, values: readonly [T, ...T[]]): T =>
  values[random.int(values.length)] ?? values[0];

export function shuffled<T>(random: Random, values: readonly T[]): T[] {
  const result = [...values];
  for (let last = result.length - 1; last > 0; last -= 1) {
    const other = random.int(last + 1);
    [result[last], result[other]] = [result[other] as T, result[last] as T];
  }
  return result;
}
