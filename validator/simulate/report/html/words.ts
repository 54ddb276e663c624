/** Words for the codes of reports, for readers who do not use the program. Tables have the codes beside them. Pure. */
import { CHEATS } from '../../../coverage/cheats.ts';

/** Reasons of refused rentals: constraints that no free host met, and error codes. */
const REFUSALS: Readonly<Record<string, string>> = {
  gpu_type: 'no free host had the requested GPU model',
  gpu_count: 'no free host had enough free GPUs',
  rentable: 'no host was free and had passed inspection',
  max_price_per_gpu_hour: 'every free host was more expensive than the renter accepts',
  no_executor_matches_spec: 'no host was free',
  insufficient_balance: 'the renter’s balance was too low',
  node_rent_in_progress: 'another rental of the host began at the same time',
  node_unavailable: 'the host was no longer free',
  node_not_verified: 'the host had not passed inspection',
};

/** Statuses of pods that do not run. */
const STATUSES: Readonly<Record<string, string>> = {
  CREATION_FAILED: 'never started',
  FAILED: 'ended by itself',
  BROKEN: 'lost by its host',
  STOPPED: 'stopped',
  DELETED: 'removed',
  DELETING: 'being removed',
  REBOOT_FAILED: 'failed to reboot',
};

/** Reasons of events of pods. */
const REASONS: Readonly<Record<string, string>> = {
  start_failed: 'the container did not start',
  provider_fault: 'the host failed',
  image_pull_failed: 'the image was not available',
  health_failed: 'the container did not answer',
  node_removed: 'the host left the market',
  provider_notice: 'the provider removed the host',
  balance_exhausted: 'the renter’s credit was used up',
  max_spend_reached: 'the pod’s budget was used up',
  idle_shutdown: 'the pod was idle',
};

/** Faults of a run, as a noun. */
const FAULTS: Readonly<Record<string, string>> = {
  flap: 'host did not answer for some minutes',
  dies: 'host was down and lost its pods, which were started again after it',
  slow: 'host started pods slowly',
  card: 'a card of the host failed',
  region: 'region cut off: its hosts did not answer, and their pods kept running',
  leave: 'hosts withdrawn for ever',
  clock: 'jump of the wall clock',
  central: 'central API killed',
  validator: 'validator killed',
  registry: 'image registry down',
  'payments-late': 'payments confirmed late',
  'payments-twice': 'payments reported twice',
};

/** Faults of single hosts as table cells. */
const SHORT_FAULTS: Readonly<Record<string, string>> = {
  flap: 'no answer',
  dies: 'down, pods lost',
  slow: 'slow starts',
  card: 'card failed',
};

/** Strategies of providers for their prices. */
const STRATEGIES: Readonly<Record<string, string>> = {
  fixed: 'never change a price',
  undercut: 'lower the price of a free host and raise that of a rented one',
  war: 'lower every price each day',
};

/** Codes of failed checks that are more than their own words. */
const CHECKS: Readonly<Record<string, string>> = {
  AGENT_UNREACHABLE: 'the host did not answer',
  GPU_VRAM_MISMATCH: 'the memory of the cards is not that of the offered model',
  GPU_COUNT_MISMATCH: 'the number of cards differs from the offer',
  PORTS_CLOSED: 'ports are closed',
  CLOCK_SKEW: 'the clock of the host is wrong',
  POW_TOO_SLOW: 'the proof of work took too long',
  POW_MISMATCH: 'the proof of work is wrong',
  POW_TIMEOUT: 'the proof of work was too late',
  GPU_PROOF_MISSING: 'a card sent no proof',
  EGRESS_BLOCKED: 'the host cannot reach the image registry',
  CONTAINER_START_FAILED: 'the probe container did not start',
};

const ABBREVIATIONS = /\b(?:gpu|vram|pow|cpu|uuid|mig|ssh|tls|smi)\b/g;

/** Returns the parts of a code as words. */
const spelled = (code: string): string =>
  code
    .toLowerCase()
    .replaceAll(/[_-]/g, ' ')
    .replaceAll(ABBREVIATIONS, (word) => word.toUpperCase());

export const refusalWords = (code: string): string => REFUSALS[code] ?? spelled(code);

/** `codes`: one code of a failed check, or several with spaces between them. */
export const checkWords = (codes: string): string =>
  codes
    .split(' ')
    .map((code) => CHECKS[code] ?? spelled(code))
    .join(', ');

/** `code`: the status of a pod, and a reason after a space if there is one. */
export function outcomeWords(code: string): string {
  const [status = '', reason] = code.split(' ');
  const words = STATUSES[status] ?? spelled(status);
  return reason === undefined ? words : `${words}: ${REASONS[reason] ?? spelled(reason)}`;
}

/** Completes a sentence that begins with "A host that". */
export const cheatWords = (id: string): string =>
  CHEATS.find((each) => each.id === id)?.cheat ?? spelled(id);

export const faultWords = (kind: string): string => FAULTS[kind] ?? spelled(kind);

/** Returns the fault in the few words of a narrow column. */
export const shortFaultWords = (kind: string): string => SHORT_FAULTS[kind] ?? spelled(kind);

/** Completes a sentence that begins with "Providers that". */
export const strategyWords = (strategy: string): string =>
  STRATEGIES[strategy] ?? spelled(strategy);
