/** The pods whose logs a page shows, in the member `pods` of its address. Pure. */

/** Each pod has a connection and a buffer. */
export const MAX_PODS = 8;

/** Returns the ids without empty and repeated ones; at most `MAX_PODS`. */
export function podIdsIn(listed: string): string[] {
  const ids = listed.split(',').filter((id) => id !== '');
  return [...new Set(ids)].slice(0, MAX_PODS);
}

export function addPod(ids: readonly string[], id: string): string[] {
  return podIdsIn([...ids, id].join(','));
}
