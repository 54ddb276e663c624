/** Variables of pods whose names are ours: what a renter gives them would be lost or misread. Pure. */

/** A template whose image brings its own SSH server says so with this variable set to 1. */
export const OWN_SSHD = 'PODWRIGHT_OWN_SSHD';

const OURS = /^PODWRIGHT_/i;

/**
 * The first name of `environment` that is ours, or null. `NVIDIA_VISIBLE_DEVICES` and
 * `NVIDIA_DRIVER_CAPABILITIES` are not among them: many images and templates name them, so they pass and
 * are set by the lease (agent reference 7).
 */
export function reservedVariable(environment: Readonly<Record<string, string>>): string | null {
  const isReserved = (name: string) => OURS.test(name) && name !== OWN_SSHD;
  return Object.keys(environment).find(isReserved) ?? null;
}
