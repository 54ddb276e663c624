/** Compares a reported pod with its offer, and decides a report by the findings so far. Pure. */
import type { Inventory } from '#shared/api/agent/inventory.ts';
import type { PodView } from '#shared/api/agent/pod.ts';
import type {
  RentalOffer,
  ReportFinding,
  ReportOutcome,
  ReportReason,
} from '#shared/api/central/pod-reports.ts';
import { matchesGpuType } from '#shared/api/gpu-type.ts';
import type { RentalFacts } from '../../checks/measured.ts';
import type { Expected } from '../rental-probe/probe-spec.ts';

const KIB = 1_024;

/** Resources that the pod must have inside. Device files of simulated GPUs do not exist. */
export function expectedOf(
  offer: RentalOffer,
  { simulated }: Pick<PodView, 'simulated'>,
): Expected {
  const isReal = !simulated && offer.gpu_count > 0;
  return {
    cpuCores: offer.cpu_cores,
    memoryBytes: offer.memory_bytes,
    cards: isReal ? offer.gpu_count : null,
    gpuType: isReal ? offer.gpu_type : null,
    diskBytes: offer.disk_bytes,
  };
}

/**
 * Returns what the agent itself states to be less than offered; null if it states the whole offer. A renter cannot
 * change these values.
 */
export function admittedShortfall(
  offer: RentalOffer,
  { gpu_uuids: leased }: Pick<PodView, 'gpu_uuids'>,
  { gpu, cpu, memory }: Inventory,
): string | null {
  if (leased.length < offer.gpu_count) return `${leased.length} of ${offer.gpu_count} cards`;
  const cards = gpu.devices.filter(({ uuid }) => leased.includes(uuid));
  if (gpu.error === null && cards.length < leased.length) {
    return `${cards.length} of ${offer.gpu_count} cards`;
  }
  const { gpu_type: type } = offer;
  const wrong = type === null ? undefined : cards.find(({ name }) => !matchesGpuType(name, type));
  if (wrong !== undefined) return `a ${wrong.name} instead of a ${type}`;
  if (cpu.cores < offer.cpu_cores) return `${cpu.cores} of ${offer.cpu_cores} cores`;
  const bytes = memory.total_kib * KIB;
  if (bytes < offer.memory_bytes) return `${bytes} of ${offer.memory_bytes} bytes of memory`;
  return null;
}

/** Steps of a test rental that fail if pods cannot be reached. */
const SSH_STEPS: readonly (string | null)[] = ['ready', 'login', 'command'];
/** Test rentals that must fail in such a step: a network may be down for a short time. */
const UNREACHABLE_TIMES = 2;

export type NextStep = 'test_rental' | Exclude<ReportOutcome, 'unexamined'>;

/**
 * Returns the outcome, or `test_rental` if the findings do not decide. A shortfall that only a command in the pod shows
 * needs a test rental: the renter is root in the pod, and could remove devices or replace programs. If the test rental
 * then receives everything, either the renter or the host deceives, which these findings do not decide.
 */
export function nextStep(reason: ReportReason, findings: readonly ReportFinding[]): NextStep {
  const last = findings.at(-1);
  if (last === undefined) return 'test_rental';
  const isContradicted = findings.some(({ shortfall }) => shortfall !== null);
  if (last.shortfall === null) return isContradicted ? 'undecided' : 'not_confirmed';
  if (last.means === 'agent') return 'confirmed';
  if (last.means === 'pod') return 'test_rental';
  if (last.step === 'inside') return 'confirmed';
  const failures = findings.filter(
    ({ means, step }) => means === 'test_rental' && SSH_STEPS.includes(step),
  );
  const isUnusable = reason === 'ssh_unusable' && failures.length >= UNREACHABLE_TIMES;
  return isUnusable ? 'confirmed' : 'test_rental';
}

/**
 * Returns the finding of a test rental; null if it proves nothing about the report, because the pod did not start or
 * could not be reached although the renter reports something else.
 */
export function findingOf(reason: ReportReason, rental: RentalFacts): ReportFinding | null {
  const { status, step, detail, at_ms: at } = rental;
  if (status === 'not_run') return null;
  if (status === 'passed') return { means: 'test_rental', at, step: null, shortfall: null };
  const isRelevant = step === 'inside' || (reason === 'ssh_unusable' && SSH_STEPS.includes(step));
  return isRelevant ? { means: 'test_rental', at, step, shortfall: detail } : null;
}
