/** The host did the work that it was challenged to do, in the time that such a processor takes (validator reference 6). */
import { type Facts, failed, type Judge, type Outcome, passed, unknown } from './check.ts';
import { ONE_THOUSAND } from './check-policy.ts';
import type { GpuProofFacts, ProofFacts, ProofPart } from './measured.ts';

/** A busy host or a slow way is late now and then; one that always is has not what it offers. */
const LATE_IN_A_ROW = 3;
/** Fewer may all have been busy when they were seen: nobody can be too fast by them. */
const OTHERS_TO_BE_FASTER_THAN = 3;
/** What starting threads, a container and a connection takes is once more and once less, whatever the work. */
const UNEVEN_MS = 500;

export const judgePowCpu: Judge = (facts) => judgePart(facts, 'product', judgeTime);
export const judgePowMemory: Judge = (facts) => judgePart(facts, 'memory', () => null);
export const judgePowDisk: Judge = (facts) => judgePart(facts, 'disk', () => null);

/** Faults of hardware and driver, which do not come and go as load does. */
const CERTAIN: ReadonlySet<string> = new Set(['POW_MISMATCH', 'UUID_MISMATCH']);

/** One card that fails fails the executor: it is offered as a whole. */
export const judgePowGpu: Judge = (facts) => {
  const proof = facts.measured.gpu_proof;
  if (proof === null || proof.status === 'not_measured') {
    return unknown(proof?.detail ?? 'no real card was asked');
  }
  const words = `${proof.cards.length} cards, device gpu`;
  if (proof.status === 'proven') return judgeTime(proof, facts) ?? passed(words);
  const reason = proof.reason ?? 'GPU_PROOF_FAILED';
  const failure = failed(reason, proof.detail || words, 'The cards did not prove their work');
  if (CERTAIN.has(reason)) return failure;
  return { ...failure, inARow: LATE_IN_A_ROW, isRepeated: proof.repeated };
};

type Timed = Pick<
  ProofFacts | GpuProofFacts,
  'device' | 'ms' | 'wall_ms' | 'others' | 'expected_ms' | 'repeated'
>;
type Timing = (proof: Timed, facts: Facts) => Outcome | null;

function judgePart(facts: Facts, part: ProofPart, timing: Timing): Outcome {
  const { proof } = facts.measured;
  if (proof === null || proof.status === 'not_measured')
    return unknown(proof?.detail ?? 'not asked');
  if (!proof.parts.includes(part)) return unknown('not asked');
  const measured = proof.ms === null ? proof.detail : `${Math.round(proof.ms)} ms`;
  if (proof.status === 'proven') return timing(proof, facts) ?? passed(measured);
  const isOwn = (proof.part ?? 'product') === part;
  if (!isOwn) return unknown('another part failed');
  const failure = failed(
    proof.reason ?? 'POW_REFUSED',
    proof.detail,
    'The host did not prove its work',
  );
  return proof.reason === 'POW_MISMATCH'
    ? failure
    : { ...failure, inARow: LATE_IN_A_ROW, isRepeated: proof.repeated };
}

const judgeTime: Timing = (proof, { policy }) => {
  const { device, ms, expected_ms: expected, repeated } = proof;
  if (ms === null || expected === null || expected === 0) return null;
  const { pow_fastest_permille: fastest, pow_slowest_permille: slowest } = policy.checks;
  const permille = (ms / expected) * ONE_THOUSAND;
  const measured = `${Math.round(ms)} ms, others ${Math.round(expected)} ms`;
  const hardware = device === 'cpu' ? 'its processor' : 'its cards';
  const late = { inARow: LATE_IN_A_ROW, isRepeated: repeated };
  if (permille > slowest) {
    return { ...failed('POW_TOO_SLOW', measured, `Slower than ${hardware}`), ...late };
  }
  if (permille >= fastest || !isPlainlyFaster(proof, { expected, fastest }))
    return passed(measured);
  return { ...failed('POW_TOO_FAST', measured, `Faster than ${hardware}`), ...late };
};

/**
 * What the way takes is an estimate, which a moment of slowness beforehand makes too large: whoever is called too fast
 * is so with the way counted as work, too.
 */
function isPlainlyFaster(
  { wall_ms: wallMs, others }: Timed,
  { expected, fastest }: { expected: number; fastest: number },
): boolean {
  if (wallMs === null || others < OTHERS_TO_BE_FASTER_THAN) return false;
  return wallMs * ONE_THOUSAND < expected * fastest && expected - wallMs > UNEVEN_MS;
}
