/** Every check in its order, as one table: what it detects, what it takes, what to do about it (validator reference 5). */
import { judgeAgentVersion } from './agent.check.ts';
import { judgeAnswers } from './answers.check.ts';
import { type Check, passed } from './check.ts';
import { row, SAY_AGAIN } from './check-row.ts';
import { judgeClock } from './clock.check.ts';
import { judgeContainerStart } from './container-start.check.ts';
import { judgeIdentity, judgeIdentityUnseen } from './executor-identity.check.ts';
import * as claim from './gpu-claim.check.ts';
import { judgeGpuInventory } from './gpu-inventory.check.ts';
import { judgeGpuParts } from './gpu-parts.check.ts';
import * as state from './gpu-state.check.ts';
import * as host from './host-truth.check.ts';
import { NETWORK_CHECKS } from './network.rows.ts';
import { OFFER_CHECKS } from './offer.rows.ts';
import { judgePowCpu, judgePowDisk, judgePowGpu, judgePowMemory } from './proof.check.ts';
import { judgeUnreached } from './reachability.check.ts';
import { judgeRentalProbe, judgeSshReach } from './rental.check.ts';
import { RENTED_CHECKS } from './rented.rows.ts';
import * as standing from './standing.check.ts';
import * as update from './update.check.ts';

const ENROL = 'Enrol the agent anew: npm run agent -- enrol --help.';
const POW_REMEDIES = {
  POW_MISMATCH: 'Update the agent; if it stays, test memory and disk of the host.',
  POW_TIMEOUT: 'Free the host of other work.',
  POW_REFUSED: SAY_AGAIN,
};

const POW_TIMES = {
  POW_TOO_SLOW: 'Free the host of other work, or correct what it offers.',
  POW_TOO_FAST: 'Nothing on an honest host: tell the validator’s operator.',
};

export const CHECKS: readonly Check[] = [
  row({
    id: 'reachability',
    detects: 'an agent that does not answer, or not as one',
    required: 'the agent answers within 15 s, as itself',
    category: 'transport',
    fatal: true,
    whileRented: true,
    judge: () => passed('answered'),
    judgeAbsent: judgeUnreached,
    remedies: {
      AGENT_UNREACHABLE: 'Start the agent and open its port (8080) to the validator.',
      AGENT_ANSWER_INVALID:
        'Update the agent: it is of another version than the validator, or was changed.',
      AGENT_REFUSED:
        'It says why: mostly AGENT_TRUSTED_KEYS does not name the validator, or a clock is wrong. See `npm run agent -- doctor`.',
    },
  }),
  row({
    id: 'executor_identity',
    detects: 'an agent of another executor',
    required: 'the key that the provider enrolled, under the executor id of the portal',
    category: 'policy',
    fatal: true,
    whileRented: true,
    judge: judgeIdentity,
    judgeAbsent: judgeIdentityUnseen,
    remedies: {
      IDENTITY_CHANGED: ENROL,
      NOT_ENROLLED: ENROL,
    },
  }),
  row({
    id: 'answers',
    detects: 'an agent that shows itself, and will not be looked into',
    required:
      'an answer to each question of a check: pods, a container, ports, a registry, proofs, what the kernel tells of processors and cards',
    category: 'policy',
    mode: 'shadow',
    whileRented: true,
    judge: judgeAnswers,
    remedies: {
      QUESTIONS_UNANSWERED:
        'Look at the log of the agent for what it refused or did not do in time, and let it read /sys and /proc/driver of the host; update it.',
    },
  }),
  row({
    id: 'agent_version',
    detects: 'an agent that is too old',
    required: 'at least the oldest version of the policy',
    category: 'env',
    whileRented: true,
    judge: judgeAgentVersion,
    remedies: { AGENT_OUTDATED: 'Update the agent.' },
  }),
  row({
    id: 'image_digest',
    detects: 'an agent of another image than those that were signed',
    required: 'the image of the newest release that is given out to everybody',
    category: 'policy',
    whileRented: true,
    judge: update.judgeImageDigest,
    remedies: {
      AGENT_IMAGE_FOREIGN: 'Run the agent from AGENT_UPDATE_IMAGE, by its published tag.',
      AGENT_IMAGE_OUTDATED: 'See GET /update-status on the host for why it does not update.',
    },
  }),
  row({
    id: 'agent_update',
    detects: 'an agent whose update does not go on',
    required: 'an update that goes on, or none',
    category: 'env',
    mode: 'shadow',
    whileRented: true,
    judge: update.judgeUpdate,
    remedies: {
      AGENT_UPDATE_ROLLED_BACK: 'Look at the message; it is tried again by itself within a day.',
      AGENT_UPDATE_HELD: 'Remove the file update-hold from the agent’s home.',
      AGENT_UPDATE_STUCK: 'Mend what GET /update-status on the host names as the reason.',
    },
  }),
  row({
    id: 'clock',
    detects: 'a clock that is wrong',
    required: 'clock within 30 s of the validator',
    category: 'env',
    whileRented: true,
    judge: judgeClock,
    remedies: { CLOCK_SKEW: 'Enable time synchronisation (systemd-timesyncd or chrony).' },
  }),
  row({
    id: 'gpu_inventory',
    detects: 'other GPUs than those offered',
    required: 'GPUs readable, distinct, of the offered type and count',
    category: 'env',
    whileRented: true,
    judge: judgeGpuInventory,
    remedies: {
      GPU_UNREADABLE: 'Reboot, or reinstall the driver.',
      GPU_SIMULATED: 'Start the agent with AGENT_GPU=nvidia.',
      GPU_COUNT_MISMATCH: 'Correct the record in the portal, or reseat the missing card.',
      GPU_DUPLICATE: 'Reinstall the driver.',
      GPU_MODEL_MISMATCH: 'Correct the GPU type in the portal.',
    },
  }),
  row({
    id: 'gpu_count',
    detects: 'more cards than fit into a host',
    required: 'a plausible number of cards',
    category: 'policy',
    judge: claim.judgeGpuCount,
    remedies: { GPU_COUNT_IMPLAUSIBLE: 'Correct the record in the portal.' },
  }),
  row({
    id: 'gpu_model',
    detects: 'a model that nobody has heard of',
    required: 'models that the policy knows',
    category: 'policy',
    mode: 'shadow',
    judge: claim.judgeGpuModel,
    remedies: { GPU_MODEL_UNKNOWN: 'Wait until the policy lists the model, or report it.' },
  }),
  row({
    id: 'gpu_vram',
    detects: 'a card under the name of another model',
    required: 'the memory of the model',
    category: 'policy',
    judge: claim.judgeGpuVram,
    remedies: { GPU_VRAM_MISMATCH: 'Report the variant of the model if it is a genuine one.' },
  }),
  row({
    id: 'gpu_parts',
    detects: 'whole cards told as parts of cards, or parts that no card has',
    required: 'parts that are named as such, and fit together into a card that can be split',
    category: 'policy',
    mode: 'shadow',
    judge: judgeGpuParts,
    remedies: { GPU_PARTS_FALSE: 'Restart the agent; if it stays, reinstall the driver.' },
  }),
  row({
    id: 'gpu_sources_agree',
    detects: 'an nvidia-smi that says something else than kernel and driver',
    required: 'nvidia-smi, PCI bus and driver show the same cards',
    category: 'policy',
    mode: 'shadow',
    judge: claim.judgeGpuSources,
    remedies: { GPU_SOURCES_DISAGREE: 'Reboot; if it stays, reinstall the driver.' },
  }),
  row({
    id: 'driver_library',
    detects: 'a driver library that is not NVIDIA’s',
    required: 'the digest of the driver’s package, where it is known',
    category: 'policy',
    mode: 'shadow',
    judge: claim.judgeDriverLibrary,
    remedies: { DRIVER_LIBRARY_MISMATCH: 'Reinstall the driver package.' },
  }),
  row({
    id: 'driver_min',
    detects: 'a driver that is too old',
    required: 'at least the oldest driver of the policy, from its date on',
    category: 'env',
    judge: claim.judgeDriverMin,
    remedies: { DRIVER_TOO_OLD: 'Upgrade the driver.' },
  }),
  row({
    id: 'spec_stable',
    detects: 'a host that has become another',
    required: 'model and count as accepted',
    category: 'policy',
    judge: standing.judgeSpecStable,
    remedies: { SPEC_CHANGED: 'Change type or number of GPUs in the portal.' },
  }),
  row({
    id: 'gpu_uuid_stable',
    detects: 'cards that were exchanged',
    required: 'the cards that were accepted',
    category: 'policy',
    whileRented: true,
    judge: standing.judgeUuidsStable,
    remedies: { GPU_SET_CHANGED: 'Add the host anew if its cards were exchanged for good.' },
  }),
  row({
    id: 'gpu_uuid_unique',
    detects: 'one card that answers for two executors',
    required: 'cards that no other executor has',
    category: 'policy',
    whileRented: true,
    judge: standing.judgeUuidsUnique,
    remedies: { GPU_DUPLICATE: 'Keep one executor for each card; the one checked first keeps it.' },
  }),
  row({
    id: 'gpu_health',
    detects: 'a card that is ill',
    required: 'no uncorrectable errors, no fault',
    category: 'runtime',
    whileRented: true,
    judge: state.judgeGpuHealth,
    remedies: { GPU_UNHEALTHY: 'Reset or service the card.' },
  }),
  row({
    id: 'power_limit',
    detects: 'a card that is throttled',
    required: 'at least 0.9 of the default power limit',
    category: 'env',
    mode: 'shadow',
    judge: state.judgePowerLimit,
    remedies: { GPU_POWER_CAPPED: 'Restore the limit: nvidia-smi -pl <default>.' },
  }),
  row({
    id: 'gpu_wedge',
    detects: 'a card that hangs',
    required: 'no card fully busy with nothing on it',
    category: 'runtime',
    mode: 'shadow',
    judge: state.judgeGpuWedge,
    remedies: { GPU_WEDGED: 'Drain the host, then reset the card or reboot.' },
  }),
  row({
    id: 'gpu_idle_use',
    detects: 'a card that works for others while it is offered',
    required: 'no process on a GPU that no pod has',
    category: 'policy',
    judge: state.judgeIdleUse,
    remedies: { GPU_BUSY_OUTSIDE_POD: 'Stop the processes that nvidia-smi shows.' },
  }),
  row({
    id: 'cpu_truth',
    detects: 'more cores than there are',
    required: 'as many cores as the kernel has',
    category: 'policy',
    mode: 'shadow',
    judge: host.judgeCpu,
    remedies: { CPU_OVERSTATED: 'Correct the number of cores that the host offers.' },
  }),
  row({
    id: 'mem_truth',
    detects: 'more memory than there is',
    required: 'as much memory as kernel and pods see',
    category: 'policy',
    mode: 'shadow',
    judge: host.judgeMemory,
    remedies: { MEMORY_OVERSTATED: 'Correct the memory that the host offers.' },
  }),
  row({
    id: 'disk_floor',
    detects: 'a full disk',
    required: 'the free space of the policy',
    category: 'env',
    judge: host.judgeDiskFloor,
    remedies: { DISK_LOW: 'Free space on the disk of Docker’s data.' },
  }),
  row({
    id: 'disk_health',
    detects: 'a disk that cannot be written, or is not as large as said',
    required: 'a disk that takes a file, no larger than its device',
    category: 'runtime',
    mode: 'observe',
    judge: host.judgeDiskHealth,
    remedies: {
      DISK_READONLY: 'Repair the file system and mount it for writing.',
      DISK_OVERSTATED: 'Correct the disk that the host offers.',
    },
  }),
  ...OFFER_CHECKS,
  row({
    id: 'container_start',
    detects: 'a runtime that does not give what is offered',
    required: 'a probe container starts, runs and is removed',
    category: 'runtime',
    isTrial: true,
    judge: judgeContainerStart,
    remedies: {
      CONTAINER_START_FAILED: 'Run `docker run --rm hello-world` on the host and mend it.',
      GPU_RUNTIME_NVML_MISMATCH:
        'Reboot: the driver was upgraded while its old module stayed loaded.',
      GPU_RUNTIME_DEVICE_FAULT:
        'Install or repair the NVIDIA container toolkit, then restart Docker.',
    },
  }),
  ...NETWORK_CHECKS,
  row({
    id: 'ssh_reach',
    detects: 'pods whose SSH port nobody answers',
    required: 'the SSH port of a pod answers, 90 s after its start',
    category: 'env',
    mode: 'shadow',
    whileRented: true,
    judge: judgeSshReach,
    remedies: { POD_SSH_UNREACHABLE: 'Open the leased port; see that the SSH gateway runs.' },
  }),
  row({
    id: 'rental_probe',
    detects: 'a host that passes its checks and cannot be rented',
    required: 'launch, login, command, the offered cards and limits inside, removal',
    category: 'runtime',
    mode: 'shadow',
    isTrial: true,
    judge: judgeRentalProbe,
    remedies: {
      RENTAL_PROBE_FAILED: 'See the step that failed.',
      RENTAL_PROBE_SKIPPED:
        'Look at `orphans` and pods of the agent; `remove-all` takes away what is left.',
    },
  }),
  row({
    id: 'pow_cpu',
    detects: 'a processor that does not work as offered',
    required: 'the product that was asked for, in the time of the processor',
    category: 'policy',
    mode: 'shadow',
    isTrial: true,
    judge: judgePowCpu,
    remedies: { ...POW_REMEDIES, ...POW_TIMES },
  }),
  row({
    id: 'pow_gpu',
    detects: 'a card that is not there, or does not work as offered',
    required:
      'the product that was asked for, of every card, in the time of its model (device: gpu)',
    category: 'policy',
    mode: 'shadow',
    isTrial: true,
    judge: judgePowGpu,
    remedies: {
      ...POW_REMEDIES,
      ...POW_TIMES,
      FABRIC_NOT_READY: 'Start nvidia-fabricmanager in the version of the driver.',
      DEVICE_ABSENT: 'Look whether nvidia-smi and `docker run --gpus` show every card.',
      VRAM_UNAVAILABLE: 'Stop what else uses memory of the cards.',
      UUID_MISMATCH: 'Restart the agent and Docker, so that both know the cards that are there.',
      GPU_PROOF_FAILED: SAY_AGAIN,
      GPU_PROOF_MISSING:
        'Build the image on the host: docker build -t podwright.local/gpu-proof:1 agent/gpu-proof.',
    },
  }),
  row({
    id: 'pow_mem',
    detects: 'memory that is not there',
    required: 'the walk through memory that was asked for',
    category: 'policy',
    mode: 'shadow',
    isTrial: true,
    judge: judgePowMemory,
    remedies: POW_REMEDIES,
  }),
  row({
    id: 'pow_disk',
    detects: 'a disk that is not there',
    required: 'the walk over the disk that was asked for',
    category: 'policy',
    mode: 'shadow',
    isTrial: true,
    judge: judgePowDisk,
    remedies: POW_REMEDIES,
  }),
  ...RENTED_CHECKS,
];
