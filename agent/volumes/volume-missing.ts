/** The copy of a volume that a pod is to get is not on this host, or not as it is to be. */
export class VolumeMissing extends Error {
  override name = 'VolumeMissing';
}
