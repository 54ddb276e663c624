/** Judges how full the disks are. Pure. */
import { diskFinding } from '#shared/check/disk-use.ts';
import type { Finding } from '#shared/check/finding.ts';
import type { DiskFacts } from './disk.facts.ts';

const REMEDIES = {
  'docker-disk': 'docker system df; remove what no pod of yours needs: docker image ls',
  'home-disk': 'du -xsh /var/* | sort -h; or move AGENT_HOME to another disk',
};

export function diskFindings({ engine, home }: DiskFacts): Finding[] {
  return [
    diskFinding('docker-disk', engine, REMEDIES['docker-disk']),
    diskFinding('home-disk', home, REMEDIES['home-disk']),
  ];
}
