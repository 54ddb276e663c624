/** Checks by proof of work: the host solved its challenges in the time expected for its hardware. */
import { ok, unknown } from '#shared/check/check.ts';
import { cardsMsOf } from './card-times.ts';
import {
  type CheckOutcome,
  defineCheck,
  type Facts,
  fail,
  type Judge,
  READ_LOG_AND_RESTART,
} from './check.ts';
import { PERMILLE } from './check-policy.ts';
import type { GpuProofFacts, ProofFacts, ProofPart } from './measured.ts';

/** Consecutive late proofs at which a check fails: a host may be busy, or a network slow. */
const LATE_IN_A_ROW = 3;
/** Consecutive runs without a program for proofs on cards at which the check fails. It does not depend on load. */
const MISSING_IN_A_ROW = 2;
/** Minimum number of other executors of the model for `POW_TOO_FAST`: fewer may all have been busy when measured. */
const OTHERS_TO_BE_FASTER_THAN = 3;
/** Variation of the time to start threads, a container and a connection. It does not depend on the work. */
const VARIATION_MS = 500;

const REMEDIES = {
  POW_MISMATCH: 'Update the agent; if the failure persists, test memory and disk of the host.',
  POW_TIMEOUT: 'Stop other work on the host.',
  POW_REFUSED: READ_LOG_AND_RESTART,
};
const BUILD_IMAGE =
  'Update the agent, and build the image on the host: docker build -t podwright.local/gpu-proof:3 agent/gpu-proof.';
const TIMING_REMEDIES = {
  POW_TOO_SLOW: 'Stop other work on the host, or correct what it offers.',
  POW_TOO_FAST: 'Should not occur on a genuine host. Report it to the validator’s operator.',
};
/** Faults of hardware or driver, which do not depend on load. */
const PERMANENT: ReadonlySet<string> = new Set(['POW_MISMATCH', 'UUID_MISMATCH']);

export const powCpu = defineCheck({
  id: 'pow_cpu',
  detects: 'a processor that is slower than offered or computes wrong results',
  required: 'the requested matrix product, in the time expected for this processor',
  category: 'policy',
  mode: 'shadow',
  isTrial: true,
  judge: (facts) => judgePart(facts, 'product', judgeTime),
  remedies: { ...REMEDIES, ...TIMING_REMEDIES, GPU_PROOF_MISSING: BUILD_IMAGE },
});

/** One failing card fails the executor, which is offered as a whole. */
export const powGpu = defineCheck({
  id: 'pow_gpu',
  detects: 'a card that does not exist, or is slower than offered',
  required:
    'the requested matrix product of every card, in the time expected for the card’s model, while its memory is filled in sequence, and a walk over the memory that is faster than filling it again',
  category: 'policy',
  mode: 'shadow',
  isTrial: true,
  judge(facts) {
    const proof = facts.measured.gpu_proof;
    if (proof === null || proof.status === 'not_measured') {
      return unknown(proof?.detail ?? 'no real card was challenged');
    }
    const measured = `${proof.cards.length} cards, device gpu`;
    if (proof.status === 'proven') return judgeCardTime(proof, facts) ?? ok(measured);
    const reason = proof.reason ?? 'GPU_PROOF_FAILED';
    const failure = fail(reason, proof.detail || measured, 'The cards did not prove their work');
    if (PERMANENT.has(reason)) return { ...failure, isCertain: true };
    const inARow = proof.status === 'missing' ? MISSING_IN_A_ROW : LATE_IN_A_ROW;
    return { ...failure, inARow, isRepeated: proof.repeated };
  },
  remedies: {
    ...REMEDIES,
    ...TIMING_REMEDIES,
    FABRIC_NOT_READY: 'Start nvidia-fabricmanager in the version of the driver.',
    DEVICE_ABSENT: 'Check that nvidia-smi and `docker run --gpus` list every card.',
    VRAM_UNAVAILABLE: 'Stop other programs that use memory of the cards.',
    UUID_MISMATCH: 'Restart the agent and Docker, so that both list the present cards.',
    GPU_PROOF_FAILED: READ_LOG_AND_RESTART,
    GPU_PROOF_MISSING: BUILD_IMAGE,
  },
});

export const powMem = defineCheck({
  id: 'pow_mem',
  detects: 'memory that does not exist',
  required: 'a fill of memory in sequence, and a walk over it that is faster than filling it again',
  category: 'policy',
  mode: 'shadow',
  isTrial: true,
  judge: (facts) => judgePart(facts, 'memory', () => null),
  remedies: { ...REMEDIES, GPU_PROOF_MISSING: BUILD_IMAGE },
});

export const powDisk = defineCheck({
  id: 'pow_disk',
  detects: 'a disk that does not exist',
  required: 'a file filled in sequence, and a walk over it that is faster than filling it again',
  category: 'policy',
  mode: 'shadow',
  isTrial: true,
  judge: (facts) => judgePart(facts, 'disk', () => null),
  remedies: { ...REMEDIES, GPU_PROOF_MISSING: BUILD_IMAGE },
});

type Timed = Pick<
  ProofFacts | GpuProofFacts,
  'device' | 'ms' | 'wall_ms' | 'others' | 'expected_ms' | 'repeated'
>;
/** Returns null if the time cannot be judged. */
type JudgeTime = (proof: Timed, facts: Facts) => CheckOutcome | null;

function judgePart(
  facts: Parameters<Judge>[0],
  part: ProofPart,
  judgeDuration: JudgeTime,
): CheckOutcome {
  const { proof } = facts.measured;
  if (proof === null || proof.status === 'not_measured') {
    return unknown(proof?.detail ?? 'not challenged');
  }
  if (!proof.parts.includes(part)) return unknown('not challenged');
  const measured = proof.ms === null ? proof.detail : `${Math.round(proof.ms)} ms`;
  if (proof.status === 'proven') return judgeDuration(proof, facts) ?? ok(measured);
  // A failure that concerns no single part is reported for the matrix product.
  if ((proof.part ?? 'product') !== part) return unknown('another part failed');
  const reason = proof.reason ?? 'POW_REFUSED';
  const failure = fail(reason, proof.detail, 'The host did not prove its work');
  return proof.reason === 'POW_MISMATCH'
    ? { ...failure, isCertain: true }
    : { ...failure, inARow: LATE_IN_A_ROW, isRepeated: proof.repeated };
}

const judgeTime: JudgeTime = (proof, { policy }) => {
  const { device, ms, expected_ms: expected, repeated } = proof;
  if (ms === null || expected === null || expected === 0) return null;
  const { pow_fastest_permille: fastest, pow_slowest_permille: slowest } = policy.checks;
  const permille = (ms / expected) * PERMILLE;
  const measured = `${Math.round(ms)} ms, others ${Math.round(expected)} ms`;
  const hardware = device === 'cpu' ? 'its processor' : 'its cards';
  const late = { inARow: LATE_IN_A_ROW, isRepeated: repeated };
  if (permille > slowest) {
    return { ...fail('POW_TOO_SLOW', measured, `Slower than ${hardware}`), ...late };
  }
  if (permille >= fastest || !isClearlyFaster(proof, { expected, fastest })) return ok(measured);
  return { ...fail('POW_TOO_FAST', measured, `Faster than ${hardware}`), ...late };
};

/** Compares the time of cards with other hosts, then with the speed of their models in the policy. */
const judgeCardTime: JudgeTime = (proof, facts) => {
  const outcome = judgeTime(proof, facts);
  if (outcome?.status === 'fail') return outcome;
  const expected =
    facts.inventory === null
      ? undefined
      : cardsMsOf(facts.inventory, facts.policy.checks.card_times);
  if (proof.ms === null || expected === undefined) return outcome;
  if (expected === null) return ok('proven, but the policy has no time for a card of this model');
  const limit = (expected * facts.policy.checks.pow_slowest_permille) / PERMILLE;
  if (proof.ms <= limit) return outcome;
  const measured = `${Math.round(proof.ms)} ms, the model ${Math.round(expected)} ms`;
  const late = { inARow: LATE_IN_A_ROW, isRepeated: proof.repeated };
  return { ...fail('POW_TOO_SLOW', measured, 'Slower than its cards'), ...late };
};

/** Returns true unless the time shows that a proof was not computed by the reported hardware alone. */
export const isTimely = (proof: Timed, facts: Facts): boolean =>
  judgeTime(proof, facts)?.status !== 'fail';

/** As `isTimely`, for cards: they must also have the speed of their models, which the policy must know. */
export function areCardsTimely(proof: Timed, facts: Facts): boolean {
  if (judgeCardTime(proof, facts)?.status === 'fail' || facts.inventory === null) return false;
  return cardsMsOf(facts.inventory, facts.policy.checks.card_times) !== null;
}

/**
 * Returns true if a proof is too fast even if the network's share of the time is included. After a moment of slowness,
 * the estimate of that share is too large.
 */
function isClearlyFaster(
  { wall_ms: wallMs, others }: Timed,
  { expected, fastest }: { expected: number; fastest: number },
): boolean {
  if (wallMs === null || others < OTHERS_TO_BE_FASTER_THAN) return false;
  return wallMs * PERMILLE < expected * fastest && expected - wallMs > VARIATION_MS;
}
