/** What an inspection learnt beside inventory and probe, and what was known before: kept with the evidence as it is here. */
import { z } from 'zod';
import { Amount, Name, Text } from '#shared/api/agent/bounds.ts';
import { EgressCheckResult, ImageAvailability } from '#shared/api/agent/host-checks.ts';
import { Digest, Permille } from '#shared/updates/update-manifest.ts';
import { FoundFailure } from './found-failure.ts';

const Ms = z.number().nonnegative();
/** What a time of a proof is compared with and how; documents of older programs have none of it. */
const TIMES = {
  /** From asking to the commitment, the way included. */
  wall_ms: Ms.nullable().default(null),
  /** Executors but this one that the expectation was learned from. */
  others: Amount.default(0),
};
const Part = z.enum(['product', 'memory', 'disk']);
export type ProofPart = z.output<typeof Part>;

/** How a proof of work of processor, memory and disk ended. */
export const ProofFacts = z.object({
  device: z.literal('cpu').default('cpu'),
  status: z.enum(['proven', 'failed', 'refused', 'not_measured']),
  /** Of a failure, and the part that it is in; null where it is no single one's. */
  reason: z.string().nullable(),
  part: Part.nullable(),
  detail: Text,
  parts: z.array(Part),
  /** From asking to the commitment, less what the way there and back takes; null without one. */
  ms: Ms.nullable(),
  /** What such a proof took hosts with this processor before; null while too few have been seen. */
  expected_ms: Ms.nullable(),
  ...TIMES,
  roots: z.array(z.string()),
  openings_hash: z.string().nullable(),
  /** Whether it is the one of the inspection before. */
  repeated: z.boolean(),
});
export type ProofFacts = z.output<typeof ProofFacts>;

/** What one card made of its part; `reason` is null where it is proven. */
export const CardProof = z.object({
  uuid: Name,
  reason: z.string().nullable(),
  detail: Text,
  roots: z.array(z.string()),
  openings_hash: z.string().nullable(),
});
export type CardProof = z.output<typeof CardProof>;

/** How the proof of work of an executor's cards ended, all at once. */
export const GpuProofFacts = z.object({
  device: z.literal('gpu'),
  /** `missing`: the agent has nothing to prove it with. */
  status: z.enum(['proven', 'failed', 'missing', 'not_measured']),
  /** Of the first card that failed, or of all. */
  reason: z.string().nullable(),
  detail: Text,
  /** As of the processor; null where a card failed before. */
  ms: Ms.nullable(),
  expected_ms: Ms.nullable(),
  ...TIMES,
  cards: z.array(CardProof),
  repeated: z.boolean(),
});
export type GpuProofFacts = z.output<typeof GpuProofFacts>;

/** How fast the line has been, in kilobits a second as the executor sees it. */
export const LineFacts = z.object({
  samples: Amount,
  /** Moving means. */
  down_kbit: Amount,
  up_kbit: Amount,
  last_down_kbit: Amount,
  last_up_kbit: Amount,
  /** The way on which something else arrived than was sent. */
  false_stream: z.enum(['down', 'up']).nullable(),
  /** How often in a row the agent would not be measured. */
  refusals: Amount,
  /** The fastest that another executor was of late: what the validator's own line can do at least. */
  others_down_kbit: Amount,
  others_up_kbit: Amount,
  measured_ms: z.number().nullable(),
  /** Whether the inspection before went by the same measurement. */
  repeated: z.boolean(),
});
export type LineFacts = z.output<typeof LineFacts>;

/** Which digest everybody is to run, and what is known of the one that the agent runs. */
export const ReleaseFacts = z.object({
  target: Digest,
  sequence: Amount,
  /** Whether it was ever signed. */
  is_known: z.boolean(),
  rollout_permille: Permille,
  /** Until then nobody has to have followed. */
  grace_until_ms: Ms,
});
export type ReleaseFacts = z.output<typeof ReleaseFacts>;

const Step = z.enum(['launch', 'ready', 'login', 'command', 'inside', 'remove']);
export type RentalStep = z.output<typeof Step>;

/** How a rental from end to end went. */
export const RentalFacts = z.object({
  status: z.enum(['passed', 'failed', 'not_run']),
  /** That failed. */
  step: Step.nullable(),
  detail: Text,
  ms: Ms,
  /** Validator's wall clock when it ended, milliseconds. */
  at_ms: z.int(),
  /** What the pod was given of memory, and what there was in all as seen from inside; null where it did not pass. */
  memory: z.object({ given_kib: Amount, seen_kib: Amount }).nullable().default(null),
  /** Those on the host that kept it from being run. */
  pods: z.array(Name).default([]),
  /** Whether it was not run because the agent would not have it, or did not answer. */
  refused: z.boolean().default(false),
  /** Whether it is the one of an inspection before, or beside the regular ones. */
  repeated: z.boolean(),
});
export type RentalFacts = z.output<typeof RentalFacts>;

/** What was at work on a host before it was given work to prove itself by. */
export const Load = z.object({
  cpu_percent: z.number().nullable(),
  cards: z.array(
    z.object({
      uuid: Name,
      utilization_percent: z.number().nullable(),
      memory_used_mib: z.number().nullable(),
      processes: z.number().nullable(),
    }),
  ),
});
export type Load = z.output<typeof Load>;

/** What an agent that had shown itself was asked, and gave no answer to; `sources`: that its inventory leaves out. */
export const Unanswered = z.object({
  question: z.enum(['pods', 'container', 'ports', 'registry', 'proof', 'sources']),
  problem: Text,
  /** Whether it was not asked anew, or only because somebody asked us. */
  repeated: z.boolean(),
});
export type Unanswered = z.output<typeof Unanswered>;

export const Measured = z.object({
  /** Validator's wall clock when the inventory was asked for, milliseconds. */
  asked_ms: z.number(),
  /** Null where it was not asked for. */
  pods: z
    .array(
      z.object({
        id: Name,
        phase: Name,
        reason: Name.nullable().default(null),
        gpu_uuids: z.array(Name).default([]),
      }),
    )
    .nullable(),
  /** Pods of rental probes of ours, which may have been there when the pods were asked for. */
  own_pods: z.array(Name).default([]),
  /** Null where the inventory was read before any work was given. */
  load: Load.nullable().default(null),
  proof: ProofFacts.nullable(),
  /** Null where no real card was asked. */
  gpu_proof: GpuProofFacts.nullable().default(null),
  /** Ports that the agent listened on for us; null where that was not asked for or not understood. */
  ports: z
    .object({
      opened: Amount,
      reached: Amount,
      problem: Text.nullable(),
      /** Whether the agent would not, as `problem` says. */
      refused: z.boolean().default(false),
      repeated: z.boolean(),
    })
    .nullable(),
  /** Whether its engine reaches a registry; null where that was not asked for or not told. */
  egress: EgressCheckResult.extend({ repeated: z.boolean() }).nullable().default(null),
  /** Images of templates; null where they were not asked for or not told. */
  templates: z
    .object({ images: z.array(ImageAvailability), repeated: z.boolean() })
    .nullable()
    .default(null),
  /** Null where it was never tried. */
  line: LineFacts.nullable().default(null),
  /** Null where none was due, or possible. */
  rental: RentalFacts.nullable().default(null),
  /** Of pods that have run for a while: whether their SSH ports are answered. Null where that was not tried. */
  ssh: z
    .array(z.object({ pod: Name, problem: Text.nullable() }))
    .nullable()
    .default(null),
  /** What the executor was when it first passed under its present record; null before that. */
  accepted: z.object({ spec: Name, gpu_uuids: z.array(Name) }).nullable(),
  /** GPUs of its inventory that another executor had first. */
  taken: z.array(z.object({ uuid: Name, executor_id: z.string() })),
  /** How often in a row, just before, a reason was given that counts only when it is seen again. */
  streaks: z.record(z.string(), z.int().min(0)),
  /** By check: what was found before and not shown to be over; documents of older programs have none. */
  found: z.record(z.string(), FoundFailure).default({}),
  /** Documents of older programs have none. */
  unanswered: z.array(Unanswered).default([]),
  /** Null where no image of the agent is signed for; documents of older programs have none. */
  releases: ReleaseFacts.nullable().default(null),
});
export type Measured = z.output<typeof Measured>;

/** Of an inspection that measured nothing beside. */
export function nothingMeasured(askedMs: number): Measured {
  return {
    ...{ asked_ms: askedMs, pods: null, proof: null, gpu_proof: null, rental: null, ssh: null },
    ...{ ports: null, egress: null, templates: null, line: null, releases: null },
    ...{ accepted: null, taken: [], streaks: {}, found: {}, own_pods: [], load: null },
    unanswered: [],
  };
}
