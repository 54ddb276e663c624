/** How much room there is: connections that have not logged in, sessions per pod and in all. */
import { type Counter, createCounter } from '#shared/runtime/semaphore.ts';

export type Seats = { waiting: Counter; sessions: Counter };

/** Connections of one address, and of all, that have not logged in yet. */
export const MAX_WAITING_PER_ADDRESS = 30;
export const MAX_WAITING = 100;

/** What those who have logged in are held to. */
export type Bounds = {
  /** Logged-in connections per pod and on this host (agent reference 12.1). */
  sessionsPerPod: number;
  sessions: number;
  /** A connection on which nothing was sent either way for this long is ended. */
  idleMs: number;
  /** How often that is looked at. */
  idleCheckMs: number;
};

export const BOUNDS: Bounds = {
  sessionsPerPod: 10,
  sessions: 200,
  idleMs: 24 * 3_600_000,
  idleCheckMs: 60_000,
};

/** All empty. */
export function createSeats({ sessionsPerPod, sessions }: Bounds): Seats {
  return {
    waiting: createCounter(MAX_WAITING_PER_ADDRESS, MAX_WAITING),
    sessions: createCounter(sessionsPerPod, sessions),
  };
}
