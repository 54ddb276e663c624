/** A pod's notebook server on the agent's wire (agent reference 12.3). */
import { z } from 'zod';
import { Counter, HostTime, Name, Port } from './bounds.ts';

/**
 * Asks for a notebook server in a pod. The caller makes the token and keeps it: it is in no answer of the
 * agent's, so that whoever may only look at pods cannot enter their notebooks.
 */
export const NotebookRequest = z.strictObject({
  /** One of the pod's internal ports, not SSH's. */
  internal_port: Port,
  /** Counts the requests for this pod: a repeat changes nothing, a higher one asks anew. */
  request: Counter.min(1),
  /** 128 random bits at least, in hex. */
  token: z.string().regex(/^[0-9a-f]{32,128}$/, 'Not a token of 32 to 128 hex digits'),
});
export type NotebookRequest = z.output<typeof NotebookRequest>;

/**
 * - `installing`: on its way to its first answer since the request; `step` says how far
 * - `running`: answers to its token, and to nothing else
 * - `restarting`: had been running; the pod or the server ended and it is started again
 * - `failed`: given up until the next request; `reason` says why
 */
export const NOTEBOOK_STATUSES = ['installing', 'running', 'restarting', 'failed'] as const;

/** What is under way: a look at the image, the installation, the start, the wait for its answer. */
export const NOTEBOOK_STEPS = ['look', 'install', 'start', 'wait'] as const;

/** Closed and stable: clients key on it. */
export const NOTEBOOK_REASONS = [
  /** The image has no Python 3.8 or later, and no package tool that could bring one. */
  'NotebookNoPython',
  /** Python or a package tool refused; the message ends with its last lines. */
  'NotebookInstallFailed',
  /** The same, and what it said is that packages could not be fetched. */
  'NotebookSourceUnreachable',
  /** Another program in the pod listens on the port, or the pod has it no more. */
  'NotebookPortBusy',
  /** It ended, did not answer in time, or answered without its token. */
  'NotebookNotReady',
  'NotebookDeadlineExceeded',
] as const;
export type NotebookReason = (typeof NOTEBOOK_REASONS)[number];

export const NotebookView = z.object({
  request: Counter,
  internal_port: Port,
  status: z.enum(NOTEBOOK_STATUSES),
  /** Null while it rests: running or failed. */
  step: z.enum(NOTEBOOK_STEPS).nullable(),
  reason: z.enum(NOTEBOOK_REASONS).nullable(),
  message: z.string(),
  /** Where its pages begin: `/lab`, `/tree` or `/`; null until that is known. */
  path: Name.nullable(),
  /** When the present status began, host clock, milliseconds. */
  since_ms: HostTime,
});
export type NotebookView = z.output<typeof NotebookView>;
