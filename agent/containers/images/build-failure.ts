/** A Dockerfile that cannot be built; its message is for the renter and ends with the log's last lines. */
export class BuildFailure extends Error {
  override name = 'BuildFailure';
}
