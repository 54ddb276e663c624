/** Judges how full the disks are (agent reference 11). Pure. */
import type { DiskFacts, DiskUse } from './disk.facts.ts';
import { type Finding, fail, ok, unknown, warn } from './finding.ts';
import type { Told } from './told.ts';

/** Images are thrown away from here on, and pulls are at risk. */
const FULL_SHARE = 0.85;
/** Launches and the agent's own store are at risk. */
const DANGEROUS_SHARE = 0.95;
const BYTES_PER_GIB = 2 ** 30;

const REMEDIES = {
  'docker-disk': 'docker system df; remove what no pod of yours needs: docker image ls',
  'home-disk': 'du -xsh /var/* | sort -h; or move AGENT_HOME to another disk',
};

export function diskFindings({ engine, home }: DiskFacts): Finding[] {
  return [judge('docker-disk', engine), judge('home-disk', home)];
}

function judge(id: keyof typeof REMEDIES, told: Told<DiskUse>): Finding {
  if ('problem' in told) return unknown(id, `its disk cannot be asked: ${told.problem}`);
  const { path, used, freeBytes, inodesUsed } = told.value;
  const inodes = inodesUsed === null ? '' : `, ${percent(inodesUsed)} of its inodes`;
  const free = `${(freeBytes / BYTES_PER_GIB).toFixed(1)} GiB free`;
  const what = `${path}: ${percent(used)} used${inodes}, ${free}`;
  const worst = Math.max(used, inodesUsed ?? 0);
  if (worst >= DANGEROUS_SHARE) return fail(id, what, REMEDIES[id]);
  return worst >= FULL_SHARE ? warn(id, what, REMEDIES[id]) : ok(id, what);
}

function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}
