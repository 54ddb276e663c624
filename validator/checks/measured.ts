/**
 * Facts of an inspection other than inventory and probe, plus facts of earlier runs. Evidence documents store them in
 * this form.
 */
import { z } from 'zod';
import { Amount, Name, Text } from '#shared/api/agent/bounds.ts';
import { EgressCheckResult, ImageAvailability } from '#shared/api/agent/host-checks.ts';
import type { GpuDevice, Inventory } from '#shared/api/agent/inventory.ts';
import { PORT_PROTOCOLS, SENT_PROTOCOLS } from '#shared/tls/port-protocol.ts';
import { Digest, Permille } from '#shared/updates/update-manifest.ts';

const Ms = z.number().nonnegative();
/** Maximum length of `measured` in a check result. */
export const MAX_MEASURED_CHARS = 1_000;

/**
 * A failure that a trial found, or that was found before the host was rented. It stays open until a later run shows
 * that the fault has ended.
 */
export const OpenFailure = z.object({
  reason_code: Name,
  measured: z.string().max(MAX_MEASURED_CHARS),
  message: Text,
  /** Null: the check's standard remedy for the reason. */
  remedy: Text.nullable(),
  /** When it was first found, by the validator's clock. */
  since_ms: z.int(),
});
export type OpenFailure = z.output<typeof OpenFailure>;

/** Times with which a proof is compared. Missing in documents of older versions. */
const TIMES = {
  /** Milliseconds from the request to the commitment, network included. */
  wall_ms: Ms.nullable().default(null),
  /** Number of other executors that the expectation is derived from. */
  others: Amount.default(0),
};
const Part = z.enum(['product', 'memory', 'disk']);
export type ProofPart = z.output<typeof Part>;

/** Result of a proof of work of processor, memory and disk. */
export const ProofFacts = z.object({
  device: z.literal('cpu').default('cpu'),
  status: z.enum(['proven', 'failed', 'refused', 'not_measured']),
  /** Reason and part of a failure; `part` is null if it concerns no single part. */
  reason: z.string().nullable(),
  part: Part.nullable(),
  detail: Text,
  parts: z.array(Part),
  /** Milliseconds from the request to the commitment, without the network's share; null without a commitment. */
  ms: Ms.nullable(),
  /** Expected time on hosts with this processor; null until there are enough samples. */
  expected_ms: Ms.nullable(),
  ...TIMES,
  roots: z.array(z.string()),
  openings_hash: z.string().nullable(),
  /** True if an earlier inspection already used this proof. */
  repeated: z.boolean(),
});
export type ProofFacts = z.output<typeof ProofFacts>;

/** Result of one card; `reason` is null if the card is proven. */
export const CardProof = z.object({
  uuid: Name,
  reason: z.string().nullable(),
  detail: Text,
  roots: z.array(z.string()),
  openings_hash: z.string().nullable(),
});
export type CardProof = z.output<typeof CardProof>;

/** Result of the proof of work of all cards of an executor. */
export const GpuProofFacts = z.object({
  device: z.literal('gpu'),
  /** `missing`: the agent lacks the program for proofs. */
  status: z.enum(['proven', 'failed', 'missing', 'not_measured']),
  /** Reason of the first card that failed, or a reason that concerns all cards. */
  reason: z.string().nullable(),
  detail: Text,
  /** Milliseconds as for the processor; null without a commitment. */
  ms: Ms.nullable(),
  expected_ms: Ms.nullable(),
  ...TIMES,
  cards: z.array(CardProof),
  repeated: z.boolean(),
});
export type GpuProofFacts = z.output<typeof GpuProofFacts>;

/** Proofs that an executor was offered and has passed, by device: the processor, or the UUID of a card. */
export const ProofRecord = z.object({
  /** Last inspection in which the host was not rented. */
  free_ms: z.int(),
  devices: z.array(
    z.object({
      device: Name,
      /** First offer since the last proof; null if there was none. */
      offered_ms: z.int().nullable(),
      /** Last proof; null before the first. */
      proven_ms: z.int().nullable(),
    }),
  ),
});
export type ProofRecord = z.output<typeof ProofRecord>;

/** Bandwidth in kilobits per second. Directions are named from the executor's point of view. */
export const LineFacts = z.object({
  samples: Amount,
  /** Moving means. */
  down_kbit: Amount,
  up_kbit: Amount,
  last_down_kbit: Amount,
  last_up_kbit: Amount,
  /** The direction in which received data differed from the data sent. */
  false_stream: z.enum(['down', 'up']).nullable(),
  /** Consecutive refusals of the agent. */
  refusals: Amount,
  /** The fastest recent measurement of another executor: a lower bound for the validator's own line. */
  others_down_kbit: Amount,
  others_up_kbit: Amount,
  measured_ms: z.number().nullable(),
  /** True if an earlier inspection already used this measurement. */
  repeated: z.boolean(),
});
export type LineFacts = z.output<typeof LineFacts>;

/** The digest that all agents should run, and whether any release had the digest that this agent runs. */
export const ReleaseFacts = z.object({
  target: Digest,
  sequence: Amount,
  /** True if any release had the running digest. */
  is_known: z.boolean(),
  rollout_permille: Permille,
  /** Deadline for agents to update. */
  grace_until_ms: Ms,
});
export type ReleaseFacts = z.output<typeof ReleaseFacts>;

const Step = z.enum(['launch', 'ready', 'login', 'command', 'inside', 'remove']);
export type RentalStep = z.output<typeof Step>;

/** Result of a rental probe. */
export const RentalFacts = z.object({
  status: z.enum(['passed', 'failed', 'not_run']),
  /** The step that failed; null if none did. */
  step: Step.nullable(),
  detail: Text,
  ms: Ms,
  /** Validator's wall clock when it ended, milliseconds. */
  at_ms: z.int(),
  /** Memory limit of the pod, and total memory seen inside it; null unless the probe passed. */
  memory: z.object({ given_kib: Amount, seen_kib: Amount }).nullable().default(null),
  /** Pods on the host because of which the probe was not run. */
  pods: z.array(Name).default([]),
  /** True if the agent refused the probe or did not answer, so that it was not run. */
  refused: z.boolean().default(false),
  /** True if the result is from an earlier inspection or from a requested check. */
  repeated: z.boolean(),
});
export type RentalFacts = z.output<typeof RentalFacts>;

/** The last confirmed report of a renter on the executor. */
export const RenterReport = z.object({
  report_id: Name,
  /** Shortfall of the node. */
  shortfall: Text,
  confirmed_ms: z.int(),
});
export type RenterReport = z.output<typeof RenterReport>;

/** Facts that a renter sees in a pod, and that a hidden rental compares with the offer. */
const RentalFact = z.enum([
  'login',
  'cards',
  'card_model',
  'card_memory',
  'card_uuids',
  'card_in_use',
  'memory',
  'cores',
  'disk',
]);
export type RentalFact = z.output<typeof RentalFact>;

/** A fact that was below the offer in both measurements of a rental, with both measured values. */
export const RentalMismatch = z.object({ fact: RentalFact, offered: Text, seen: z.array(Text) });
export type RentalMismatch = z.output<typeof RentalMismatch>;

/** Describes the facts with their values, for providers and renters. */
export const describeMismatches = (mismatches: readonly RentalMismatch[]): string =>
  mismatches
    .map(({ fact, offered, seen }) => `${fact}: ${seen.join(', then ')} of ${offered}`)
    .join('; ');

/**
 * Result of the last hidden rental that could be made and has ended. Names neither the pod nor the account, and rounds
 * the time to hours.
 */
export const HiddenRentalFacts = z.object({
  mismatches: z.array(RentalMismatch),
  /** Facts that only one of the two measurements found below the offer. */
  seen_once: z.array(RentalFact),
  /** Speed of the connection between validator and pod; null if it was not measured. */
  down_kbit: Amount.nullable(),
  ended_ms: z.int(),
});
export type HiddenRentalFacts = z.output<typeof HiddenRentalFacts>;

/** Load of a host before its trials, so that checks of idle hosts do not measure the trials themselves. */
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

/** A request that the agent did not answer although it sent its inventory; `sources`: data missing in the inventory. */
export const Unanswered = z.object({
  question: z.enum(['pods', 'container', 'ports', 'registry', 'proof', 'sources']),
  problem: Text,
  /** True if the request belonged to an earlier inspection or to a requested check. */
  repeated: z.boolean(),
});
export type Unanswered = z.output<typeof Unanswered>;

/** The protocol of the port of an agent that did not answer, and that of the validator's requests. */
export const PortFacts = z.object({ found: z.enum(PORT_PROTOCOLS), sent: z.enum(SENT_PROTOCOLS) });
export type PortFacts = z.output<typeof PortFacts>;

/** Other hosts that were recently tested in the same way, and those that passed; null: not compared. */
const Others = z.object({ tried: Amount, reached: Amount }).nullable().default(null);
export type Others = z.output<typeof Others>;

export const Measured = z.object({
  /** Validator's wall clock when the inventory was requested, milliseconds. */
  asked_ms: z.number(),
  /** Null if the agent answered. Missing in documents of older versions. */
  port: PortFacts.nullable().default(null),
  /** Pods on the host; null if they were not requested. */
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
  /** Pods of the validator's rental probes, which may be among `pods`. */
  own_pods: z.array(Name).default([]),
  /** Null if the inventory was read before the trials. */
  load: Load.nullable().default(null),
  proof: ProofFacts.nullable(),
  /** Null if no real card was challenged. */
  gpu_proof: GpuProofFacts.nullable().default(null),
  /** Ports that the agent opened for the check; null if that was not requested or not supported. */
  ports: z
    .object({
      /** Number of ports that the agent was requested to open. Missing in documents of older versions. */
      asked: Amount.nullable().default(null),
      opened: Amount,
      reached: Amount,
      problem: Text.nullable(),
      /** True if the agent refused; `problem` has the reason. */
      refused: z.boolean().default(false),
      /** Other hosts of which any port was reached. */
      others: Others,
      repeated: z.boolean(),
    })
    .nullable(),
  /** True if the engine reaches a registry; null if that was not requested or not reported. */
  egress: EgressCheckResult.extend({
    /** Other hosts whose engine read the digest. */
    others: Others,
    repeated: z.boolean(),
  })
    .nullable()
    .default(null),
  /** Images of templates; null if they were not requested or not reported. */
  templates: z
    .object({
      images: z.array(ImageAvailability),
      /** Images that most other hosts recently could not pull. */
      unavailable: z.array(Name).default([]),
      repeated: z.boolean(),
    })
    .nullable()
    .default(null),
  /** Null if the line was never measured. */
  line: LineFacts.nullable().default(null),
  /** Result of the rental probe; null if none was due or possible. */
  rental: RentalFacts.nullable().default(null),
  /** Null if no report of a renter is confirmed, or if a later test rental has passed. */
  renter_report: RenterReport.nullable().default(null),
  /** Missing in documents of older versions; null if there was none within the time that the policy states. */
  hidden_rental: HiddenRentalFacts.nullable().default(null),
  /** SSH ports of pods that have run for a while; null if they were not tried. */
  ssh: z
    .array(z.object({ pod: Name, problem: Text.nullable() }))
    .nullable()
    .default(null),
  /** Spec and cards with which the executor first passed with its current listing; null before that. */
  accepted: z.object({ spec: Name, gpu_uuids: z.array(Name) }).nullable(),
  /** GPUs of the inventory that another executor claimed first. */
  taken: z.array(z.object({ uuid: Name, executor_id: z.string() })),
  /** Number of consecutive failures before this run, by check. */
  streaks: z.record(z.string(), z.int().min(0)),
  /** Time of the last failure that a streak counts, by check. Missing in documents of older versions. */
  streak_times: z.record(z.string(), z.int()).default({}),
  /** Milliseconds between two failures that a streak counts. Missing in documents of older versions. */
  interval_ms: Ms.default(0),
  /** Open failures of earlier runs, by check. Missing in documents of older versions. */
  found: z.record(z.string(), OpenFailure).default({}),
  /** Offered and passed proofs, this run included; null in documents of older versions. */
  proof_record: ProofRecord.nullable().default(null),
  /** Missing in documents of older versions. */
  unanswered: z.array(Unanswered).default([]),
  /** Null if the validator signs no image of the agent. Missing in documents of older versions. */
  releases: ReleaseFacts.nullable().default(null),
});
export type Measured = z.output<typeof Measured>;

export function nothingMeasured(askedMs: number): Measured {
  return {
    asked_ms: askedMs,
    port: null,
    pods: null,
    proof: null,
    gpu_proof: null,
    rental: null,
    renter_report: null,
    hidden_rental: null,
    ssh: null,
    ports: null,
    egress: null,
    templates: null,
    line: null,
    releases: null,
    accepted: null,
    taken: [],
    streaks: {},
    streak_times: {},
    interval_ms: 0,
    found: {},
    own_pods: [],
    load: null,
    proof_record: null,
    unanswered: [],
  };
}

export function loadOf({ cpu, gpu }: Inventory): Load {
  return {
    cpu_percent: cpu.utilization_percent,
    cards: gpu.devices.map(({ uuid, utilization_percent, memory_used_mib, processes }) => ({
      uuid,
      utilization_percent,
      memory_used_mib,
      processes,
    })),
  };
}

const UNKNOWN_LOAD = { utilization_percent: null, memory_used_mib: null, processes: null };

/**
 * Replaces the load in an inventory with one measured earlier; null leaves the inventory unchanged. Cards without an
 * earlier measurement have no load.
 */
export function withLoad(inventory: Inventory, load: Load | null): Inventory {
  if (load === null) return inventory;
  const devices = inventory.gpu.devices.map((device): GpuDevice => {
    const before = load.cards.find(({ uuid }) => uuid === device.uuid);
    return { ...device, ...(before ?? UNKNOWN_LOAD) };
  });
  return {
    ...inventory,
    cpu: { ...inventory.cpu, utilization_percent: load.cpu_percent },
    gpu: { ...inventory.gpu, devices },
  };
}
