/** What fences pods in is in force, and what keeps their data is there. */
import { failed, type Judge, passed, unknown } from './check.ts';

export const judgeFirewall: Judge = ({ inventory: { isolation } }) => {
  if (isolation.firewall === 'enforced') return passed('enforced');
  return failed('NETWORK_POLICY_DRIFT', isolation.firewall, 'No firewall fences pods in');
};

export const judgeDiskQuota: Judge = ({ inventory: { isolation } }) => {
  if (isolation.disk_quota !== 'none') return passed(isolation.disk_quota);
  return failed('QUOTA_NOT_ENFORCED', 'none', 'Nothing holds pods to their share of the disk');
};

export const judgeBackupEngine: Judge = ({ inventory: { sources } }) => {
  const restic = sources?.restic;
  if (restic === undefined) return unknown('not told');
  if (restic !== null) return passed(restic);
  return failed('BACKUP_ENGINE_MISSING', 'no restic', 'The host cannot back up');
};
