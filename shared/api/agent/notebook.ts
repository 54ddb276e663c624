/** A pod's notebook server in the agent's interface. */
import { z } from 'zod';
import { Counter, HostTime, Name, Port } from './bounds.ts';

/**
 * Requests a notebook server in a pod. The caller creates and stores the token. The agent never returns it, so that a
 * key that may only read pods cannot open their notebooks.
 */
export const NotebookRequest = z.strictObject({
  /** One of the pod's internal ports, except 22. */
  internal_port: Port,
  /** Number of this request for the pod: a repeated number changes nothing, a higher one starts the server again. */
  request: Counter.min(1),
  /** At least 128 random bits in hex. */
  token: z.string().regex(/^[0-9a-f]{32,128}$/, 'Not a token of 32 to 128 hex digits'),
});
export type NotebookRequest = z.output<typeof NotebookRequest>;

/**
 * - `installing`: not yet ready since the request; `step` is the current step
 * - `running`: responds to its token, and only to it
 * - `restarting`: was running; starts again because the pod or the server ended
 * - `failed`: no further attempts until the next request; `reason` is the cause
 */
export const NOTEBOOK_STATUSES = ['installing', 'running', 'restarting', 'failed'] as const;

/** The current step: inspect the image, install, start, wait for the server. */
export const NOTEBOOK_STEPS = ['look', 'install', 'start', 'wait'] as const;

/** Clients depend on these codes. */
export const NOTEBOOK_REASONS = [
  /** The image has no Python 3.8 or later, and no package manager to install it. */
  'NotebookNoPython',
  /** Python or a package manager failed; the message ends with its last lines of output. */
  'NotebookInstallFailed',
  /** The packages could not be downloaded. */
  'NotebookSourceUnreachable',
  /** Another program in the pod listens on the port, or the pod no longer has the port. */
  'NotebookPortBusy',
  /** The server ended, did not respond in time, or accepts requests without the token. */
  'NotebookNotReady',
  'NotebookDeadlineExceeded',
] as const;
export type NotebookReason = (typeof NOTEBOOK_REASONS)[number];

export const NotebookView = z.object({
  request: Counter,
  internal_port: Port,
  status: z.enum(NOTEBOOK_STATUSES),
  /** Null if running or failed. */
  step: z.enum(NOTEBOOK_STEPS).nullable(),
  reason: z.enum(NOTEBOOK_REASONS).nullable(),
  message: z.string(),
  /** Path of the user interface: `/lab`, `/tree` or `/`; null until known. */
  path: Name.nullable(),
  /** Start of the current status by the host's clock, milliseconds since the epoch. */
  since_ms: HostTime,
});
export type NotebookView = z.output<typeof NotebookView>;
