/** The parts of an image's name, as far as the engine's own names are concerned. Pure. */

/** Without tag; `[host[:port]/]path`. */
function repositoryOf(reference: string): string {
  const at = tagAt(reference);
  return at === -1 ? reference : reference.slice(0, at);
}

/** The engine's name for exactly one content of a repository. */
export function pinnedName(reference: string, digest: string): string {
  return `${repositoryOf(reference)}@${digest}`;
}

/** With `:latest` where there is no tag. */
export function withTag(reference: string): string {
  return tagAt(reference) === -1 ? `${reference}:latest` : reference;
}

/** A colon before the last slash belongs to a port. */
function tagAt(reference: string): number {
  const at = reference.lastIndexOf(':');
  return at > reference.lastIndexOf('/') ? at : -1;
}
