/** The checks of what a provider offers, and of what the host does beside. */
import type { Check } from './check.ts';
import { row } from './check-row.ts';
import { judgeCpuQuota, judgeNested } from './container-start.check.ts';
import * as isolation from './isolation.check.ts';
import * as offer from './offer.check.ts';

export const OFFER_CHECKS: readonly Check[] = [
  row({
    id: 'banned',
    detects: 'a provider or a card that is not wanted',
    required: 'neither provider nor card is banned',
    category: 'policy',
    whileRented: true,
    judge: offer.judgeBanned,
    remedies: {
      PROVIDER_BANNED: 'Ask the support of the marketplace.',
      GPU_BANNED: 'Take the card out, or ask the support of the marketplace.',
    },
  }),
  row({
    id: 'collateral',
    detects: 'a provider without a deposit',
    required: 'a deposit for the executor',
    category: 'policy',
    mode: 'shadow',
    judge: offer.judgeCollateral,
    remedies: { COLLATERAL_MISSING: 'Make the deposit for this executor.' },
  }),
  row({
    id: 'host_side_load',
    detects: 'a host that works for others while it is offered',
    required: 'processors that idle while no pod is there, and a disk that is left to pods',
    category: 'policy',
    mode: 'shadow',
    judge: offer.judgeSideLoad,
    remedies: {
      HOST_SIDE_LOAD: 'Stop what else runs on the host; move what else lies on its disk.',
    },
  }),
  row({
    id: 'cpu_quota',
    detects: 'more cores than the engine gives',
    required: 'a container with all offered cores can be made',
    category: 'policy',
    isTrial: true,
    judge: judgeCpuQuota,
    remedies: { CPU_QUOTA_EXCEEDS_HOST: 'Correct the number of CPU cores that the host offers.' },
  }),
  row({
    id: 'disk_quota',
    detects: 'pods that can fill the disk',
    required: 'pods are held to their share of the disk',
    category: 'runtime',
    mode: 'shadow',
    whileRented: true,
    judge: isolation.judgeDiskQuota,
    remedies: {
      QUOTA_NOT_ENFORCED: 'Look at the log of the agent for why disks are not measured.',
    },
  }),
  row({
    id: 'backup_engine',
    detects: 'a host that cannot back up',
    required: 'restic is installed',
    category: 'env',
    mode: 'observe',
    whileRented: true,
    judge: isolation.judgeBackupEngine,
    remedies: { BACKUP_ENGINE_MISSING: 'Install restic (apt-get install restic).' },
  }),
  row({
    id: 'dind_runtime',
    detects: 'containers in containers that are offered and do not work',
    required: 'layers, mounts and processes of its own in a container of the runtime',
    category: 'runtime',
    mode: 'shadow',
    isTrial: true,
    judge: judgeNested,
    remedies: {
      DIND_UNAVAILABLE: 'Reinstall sysbox, or take its runtime out of /etc/docker/daemon.json.',
    },
  }),
];
